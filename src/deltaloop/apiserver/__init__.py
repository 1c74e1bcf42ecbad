"""The embedded API server: what a Kubernetes API server answers, in this process, in memory or in a file.

It owns the store with its revisions, the verbs, watches, discovery, users and faults, and, on request, what the real
server leaves to the controller manager: garbage collection by owner references and clean-up of namespaces. It meets
the client on the wire only.

    filters ──▶ handlers ──▶ write_handlers ──▶ core/writes ──▶ core/storage ──▶ change_signal
                        └──▶ read_handlers ◀── watch_stream ◀───────────────────────────┴──▶ controllers
"""

from deltaloop.apiserver.authentication import StaticUser as StaticUser
from deltaloop.apiserver.authentication import read_token_table as read_token_table
from deltaloop.apiserver.core.controllers.manifests import Manifest as Manifest
from deltaloop.apiserver.core.fault_rules import Fault as Fault
from deltaloop.apiserver.injected_faults import Faults as Faults
from deltaloop.apiserver.manifests import read_manifests as read_manifests
from deltaloop.apiserver.options import ServerOptions as ServerOptions
from deltaloop.apiserver.server import ApiServer as ApiServer
from deltaloop.apiserver.tls import IssuedCertificate as IssuedCertificate
