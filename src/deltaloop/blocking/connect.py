"""Create a client for threads from the environment's configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import deltaloop.client
from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.client import Client
from deltaloop.client import ClientOptions

_DEFAULTS: Final = ClientOptions()


def connect(
    *,
    kubeconfig: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    context: str | None = None,
    namespace: str | None = None,
    options: ClientOptions = _DEFAULTS,
    loop: BackgroundLoop | None = None,
) -> Client:
    """Create a client for the cluster that kubectl would use, without starting a thread or sending a request.

    Use it as ``with connect() as client:``.

    Args:
        kubeconfig: Path or content of a kubeconfig. By default, ``KUBECONFIG``, ``~/.kube/config`` or the pod's service
            account.
        context: Name of the context. By default, the current context.
        namespace: Default namespace. By default, the namespace of the context.
        options: Client options, such as rate limit, field manager, warnings and metrics.
        loop: Loop for the client. By default, the client creates a loop and stops it when it is closed.

    Raises:
        ConfigError: If the configuration is missing or invalid. The message contains the location and a fix.
    """
    made = deltaloop.client.connect(kubeconfig=kubeconfig, context=context, namespace=namespace, options=options)
    return Client(made, loop=loop)
