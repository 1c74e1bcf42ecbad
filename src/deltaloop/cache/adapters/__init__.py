"""Informers over a client that a program has already: its connection, its credentials, our cache.

    from deltaloop.cache.adapters import from_kubernetes
    factory = InformerFactory(from_kubernetes(api_client))        or: ListWatch(from_kubernetes(api_client), kind)

One module for each client. What an ``AdaptedClient`` does is list and watch; objects are decoded by us, from the bytes
of the answer. None of the packages is imported before its function is called, and none is a dependency: whoever has
such a client has the package. The foreign client stays the caller's to close, after the informers.
"""

from deltaloop.cache.adapters.adapted_client import AdaptedClient as AdaptedClient
from deltaloop.cache.adapters.kr8s import from_kr8s as from_kr8s
from deltaloop.cache.adapters.kubernetes import from_kubernetes as from_kubernetes
from deltaloop.cache.adapters.kubernetes_asyncio import from_kubernetes_asyncio as from_kubernetes_asyncio
from deltaloop.cache.adapters.lightkube import from_lightkube as from_lightkube
