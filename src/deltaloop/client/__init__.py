"""The way to an API server: configuration, credentials, transport, verbs, paged lists, watch streams, discovery.

This room owns everything between a call such as ``client.list(POD)`` and the socket. It knows ``api`` (what an object
is) and ``pacing``, and nothing above it; it keeps no objects and resumes no watch, that is the cache's business.

A call goes from a verb (``verbs``) to ``transport.sender`` (timeout, retries, rate, errors, log, metrics) and on to
``transport.http_transport`` (credentials, connections, TLS). A watch returns events through ``verbs.watch``. Every
decision on the way is in ``core``. A name is imported on its first use.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
