"""The way to an API server: configuration, credentials, transport, verbs, paged lists, watch streams, discovery.

This room owns everything between a call such as ``client.list(POD)`` and the socket. It knows ``api`` (what an object
is) and ``pacing``, and nothing above it; it keeps no objects and resumes no watch, that is the cache's business.

One call goes: a verb (``read_verbs``, ``write_verbs``, ``subresource_verbs``; ``client`` is all of them) → ``sender``
(time limit, repeats, rate, errors, log, metrics) → ``transport`` (protocol) → ``transport_aiohttp`` (sockets). A watch
goes back: ``transport_aiohttp`` → ``watch`` → events. Every decision on the way is in ``core``.
"""

from deltaloop.client import conditions
from deltaloop.client.client import Client
from deltaloop.client.config import ClientConfig, TlsConfig
from deltaloop.client.connect import connect, load_config
from deltaloop.client.core.credential import ClientCertificate, Credential
from deltaloop.client.core.exec_credential import ExecPlugin, InteractiveMode
from deltaloop.client.core.impersonation import Impersonation
from deltaloop.client.core.oidc import OidcProvider
from deltaloop.client.core.pager import Pager
from deltaloop.client.core.resource_index import DiscoveredResource, ResourceIndex
from deltaloop.client.core.watch_limits import WatchLimitOptions
from deltaloop.client.credentials import BasicAuth, Credentials, StaticToken, TokenFile
from deltaloop.client.errors import (
    AnswerTooLargeError,
    ConfigError,
    CredentialsError,
    RequestTimeoutError,
    StreamEndedError,
    TransportError,
    WaitTimeoutError,
)
from deltaloop.client.exec_plugin import ExecCredentials
from deltaloop.client.in_cluster import load_in_cluster
from deltaloop.client.kubeconfig import load_kubeconfig
from deltaloop.client.logs import LogStream
from deltaloop.client.metrics import ClientMetrics
from deltaloop.client.oidc import OidcCredentials
from deltaloop.client.options import (
    ClientOptions,
    DeleteOptions,
    LogOptions,
    PatchType,
    ServerWarning,
    WriteCheck,
    WriteOptions,
)
from deltaloop.client.request_keywords import (
    ApplyKeywords,
    DeleteKeywords,
    RequestKeywords,
    SubresourceWriteKeywords,
    WriteKeywords,
)
from deltaloop.client.resource_list import ResourceList, UnreadableItemsError
from deltaloop.client.transport import Headers, HttpRequest, HttpResponse, Pool, StreamResponse, Transport
from deltaloop.client.transport_aiohttp import AiohttpTransport

__all__ = [
    "AiohttpTransport",
    "AnswerTooLargeError",
    "ApplyKeywords",
    "BasicAuth",
    "Client",
    "ClientCertificate",
    "ClientConfig",
    "ClientMetrics",
    "ClientOptions",
    "ConfigError",
    "Credential",
    "Credentials",
    "CredentialsError",
    "DeleteKeywords",
    "DeleteOptions",
    "DiscoveredResource",
    "ExecCredentials",
    "ExecPlugin",
    "Headers",
    "HttpRequest",
    "HttpResponse",
    "Impersonation",
    "InteractiveMode",
    "LogOptions",
    "LogStream",
    "OidcCredentials",
    "OidcProvider",
    "Pager",
    "PatchType",
    "Pool",
    "RequestKeywords",
    "RequestTimeoutError",
    "ResourceIndex",
    "ResourceList",
    "ServerWarning",
    "StaticToken",
    "StreamEndedError",
    "StreamResponse",
    "SubresourceWriteKeywords",
    "TlsConfig",
    "TokenFile",
    "Transport",
    "TransportError",
    "UnreadableItemsError",
    "WaitTimeoutError",
    "WatchLimitOptions",
    "WriteCheck",
    "WriteKeywords",
    "WriteOptions",
    "conditions",
    "connect",
    "load_config",
    "load_in_cluster",
    "load_kubeconfig",
]
