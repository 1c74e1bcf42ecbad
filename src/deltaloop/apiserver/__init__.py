"""The embedded API server: what a Kubernetes API server answers, in this process, in memory.

It owns the store with its revisions, the verbs, watches, discovery, and what the real server leaves to the controller
manager and controllers need all the same: garbage collection by owner references and clean-up of namespaces. It knows
``deltaloop.api`` and nothing else of this project; it meets the client on the wire only.

    handlers ──▶ core/operations ──▶ core/store ──▶ change_signal ──▶ watch_stream, controllers
"""

from deltaloop.apiserver.server import ApiServer as ApiServer
from deltaloop.apiserver.server import ServerOptions as ServerOptions
from deltaloop.apiserver.server import ServerStartError as ServerStartError

__all__ = ["ApiServer", "ServerOptions", "ServerStartError"]
