"""The way to an API server: configuration, credentials, transport, verbs, paged lists, watch streams, discovery.

This room owns everything between a call such as ``client.list(POD)`` and the socket. It knows ``api`` (what an object
is) and ``pacing``, and nothing above it; it keeps no objects and resumes no watch, that is the cache's business.

One call goes: a verb (``read_verbs``, ``write_verbs``, ``subresource_verbs``) → ``caller`` (path and query) →
``sender`` (time limit, repeats, rate, errors, log, metrics) → ``transport`` (protocol) → ``transport_aiohttp``
(sockets). A watch goes back: ``transport_aiohttp`` → ``watch`` → events. Every decision on the way is in ``core``.
"""

from deltaloop.client.client import Client as Client
from deltaloop.client.config import ClientConfig as ClientConfig
from deltaloop.client.config import TlsConfig as TlsConfig
from deltaloop.client.connect import connect as connect
from deltaloop.client.connect import load_config as load_config
from deltaloop.client.core.credential import ClientCertificate as ClientCertificate
from deltaloop.client.core.credential import Credential as Credential
from deltaloop.client.core.exec_credential import ExecPlugin as ExecPlugin
from deltaloop.client.core.exec_credential import InteractiveMode as InteractiveMode
from deltaloop.client.core.impersonation import Impersonation as Impersonation
from deltaloop.client.core.oidc import OidcProvider as OidcProvider
from deltaloop.client.core.pager import Pager as Pager
from deltaloop.client.core.resource_index import DiscoveredResource as DiscoveredResource
from deltaloop.client.core.resource_index import ResourceIndex as ResourceIndex
from deltaloop.client.core.watch_limits import WatchLimitOptions as WatchLimitOptions
from deltaloop.client.credentials import BasicAuth as BasicAuth
from deltaloop.client.credentials import Credentials as Credentials
from deltaloop.client.credentials import StaticToken as StaticToken
from deltaloop.client.credentials import TokenFile as TokenFile
from deltaloop.client.exec_plugin import ExecCredentials as ExecCredentials
from deltaloop.client.in_cluster import load_in_cluster as load_in_cluster
from deltaloop.client.kubeconfig import load_kubeconfig as load_kubeconfig
from deltaloop.client.logs import LogStream as LogStream
from deltaloop.client.metrics import ClientMetrics as ClientMetrics
from deltaloop.client.oidc import OidcCredentials as OidcCredentials
from deltaloop.client.options import AccessCheck as AccessCheck
from deltaloop.client.options import ClientOptions as ClientOptions
from deltaloop.client.options import DeleteOptions as DeleteOptions
from deltaloop.client.options import LogOptions as LogOptions
from deltaloop.client.options import PatchType as PatchType
from deltaloop.client.options import ServerWarning as ServerWarning
from deltaloop.client.options import WriteCheck as WriteCheck
from deltaloop.client.options import WriteOptions as WriteOptions
from deltaloop.client.request_keywords import ApplyKeywords as ApplyKeywords
from deltaloop.client.request_keywords import DeleteCollectionKeywords as DeleteCollectionKeywords
from deltaloop.client.request_keywords import DeleteKeywords as DeleteKeywords
from deltaloop.client.request_keywords import GetKeywords as GetKeywords
from deltaloop.client.request_keywords import ListKeywords as ListKeywords
from deltaloop.client.request_keywords import PatchKeywords as PatchKeywords
from deltaloop.client.request_keywords import RequestKeywords as RequestKeywords
from deltaloop.client.request_keywords import SubresourceWriteKeywords as SubresourceWriteKeywords
from deltaloop.client.request_keywords import WriteKeywords as WriteKeywords
from deltaloop.client.resource_list import ResourceList as ResourceList
from deltaloop.client.transport import Headers as Headers
from deltaloop.client.transport import HttpRequest as HttpRequest
from deltaloop.client.transport import HttpResponse as HttpResponse
from deltaloop.client.transport import Pool as Pool
from deltaloop.client.transport import StreamResponse as StreamResponse
from deltaloop.client.transport import Transport as Transport
from deltaloop.client.transport_aiohttp import AiohttpTransport as AiohttpTransport
from deltaloop.client.write_verbs import OperationResult as OperationResult
