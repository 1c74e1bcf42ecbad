"""Client for Kubernetes API servers: configuration, credentials, transport, verbs, watches and discovery.

It stores no objects and resumes no watches, which is the task of the cache. Names are imported on first use.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
