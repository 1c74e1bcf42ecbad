"""Event recorder for Kubernetes Events, which inform users about objects and expire after about an hour.

The recorder merges repeated events, retries failed requests, and drops events if its queue is full. Recording an event
never blocks and never fails because of the server. Names are imported lazily.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
