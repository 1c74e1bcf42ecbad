"""The way to an API server: configuration, credentials, transport, verbs, paged lists, watch streams, discovery.

This room owns everything between a call such as ``client.list(POD)`` and the socket. It knows ``api`` (what an object
is) and ``pacing``, and nothing above it; it keeps no objects and resumes no watch, that is the cache's business.

One call goes: ``client`` (verb) → ``sender`` (time limit, repeats, errors, log) → ``transport`` (protocol) →
``transport_aiohttp`` (sockets). A watch goes back: ``transport_aiohttp`` → ``watch`` → events. Every decision on the
way is in ``core``.
"""

from deltaloop.client.client import Client
from deltaloop.client.config import ClientConfig, TlsConfig
from deltaloop.client.connect import connect, load_config
from deltaloop.client.core.pager import Pager
from deltaloop.client.core.resource_index import ResourceIndex
from deltaloop.client.core.watch_limits import WatchLimitOptions
from deltaloop.client.credentials import BasicAuth, Credentials, StaticToken, TokenFile
from deltaloop.client.errors import ConfigError, RequestTimeoutError, StreamEndedError, TransportError
from deltaloop.client.in_cluster import load_in_cluster
from deltaloop.client.kubeconfig import load_kubeconfig
from deltaloop.client.options import DeleteOptions
from deltaloop.client.resource_list import ResourceList
from deltaloop.client.transport import Headers, Pool, Request, Response, StreamResponse, Transport
from deltaloop.client.transport_aiohttp import AiohttpTransport

__all__ = [
    "AiohttpTransport",
    "BasicAuth",
    "Client",
    "ClientConfig",
    "ConfigError",
    "Credentials",
    "DeleteOptions",
    "Headers",
    "Pager",
    "Pool",
    "Request",
    "RequestTimeoutError",
    "ResourceIndex",
    "ResourceList",
    "Response",
    "StaticToken",
    "StreamEndedError",
    "StreamResponse",
    "TlsConfig",
    "TokenFile",
    "Transport",
    "TransportError",
    "WatchLimitOptions",
    "connect",
    "load_config",
    "load_in_cluster",
    "load_kubeconfig",
]
