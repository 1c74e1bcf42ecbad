"""Embedded API server, which behaves like kube-apiserver, in this process, in memory or with a data file.

It has the store, verbs, watches, discovery, users and injected faults and, on request, garbage collection and deletion
of namespaces' contents. The client is connected to it by HTTP only.
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
