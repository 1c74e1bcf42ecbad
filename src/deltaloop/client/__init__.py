"""The way to an API server: configuration, credentials, transport, verbs, paged lists, watch streams, discovery.

This room owns everything between a call such as ``client.list(POD)`` and the socket. It knows ``api`` (what an object
is) and ``pacing``, and nothing above it; it keeps no objects and resumes no watch, that is the cache's business.

One call goes: a verb (``read_verbs``, ``write_verbs``, ``subresource_verbs``) → ``caller`` (path and query) →
``sender`` (time limit, repeats, rate, errors, log, metrics) → ``transport`` (protocol) → ``transport_http`` (what all
HTTP has in common) → ``transport_aiohttp`` or ``transport_asyncio`` (sockets). A watch goes back, through ``watch``, as
events. Every decision on the way is in ``core``.

A name is imported when it is first used: of the two transports a program needs one.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
