"""Informers that use the connection and credentials of another Kubernetes client.

    from deltaloop.cache.adapters import from_kubernetes

    factory = InformerFactory(from_kubernetes(api_client))        or: ListWatch(from_kubernetes(api_client), kind)

Close the other client yourself after the informers have stopped.
"""

from deltaloop.cache.adapters.adapted_client import AdaptedClient as AdaptedClient
from deltaloop.cache.adapters.kr8s import from_kr8s as from_kr8s
from deltaloop.cache.adapters.kubernetes import from_kubernetes as from_kubernetes
from deltaloop.cache.adapters.kubernetes_asyncio import from_kubernetes_asyncio as from_kubernetes_asyncio
from deltaloop.cache.adapters.lightkube import from_lightkube as from_lightkube
