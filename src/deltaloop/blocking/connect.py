"""Finds the configuration of this place and makes a client for threads of it."""

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
    """Make a client for the cluster that kubectl would use here; nothing is sent and no thread begins yet.

    Use it as ``with connect() as client:``.

    Args:
        kubeconfig: A file, or the content of one; else ``KUBECONFIG``, ``~/.kube/config``, the pod's service account.
        context: Name of the context, if not the current one.
        namespace: Default namespace, if not the context's.
        options: Manners of the client: rate, field manager, warnings, metrics.
        loop: Where it lives; by default a loop of its own, which closing the client ends.

    Raises:
        ConfigError: If there is no configuration, or it cannot be used; the message says where and what to do.
    """
    made = deltaloop.client.connect(kubeconfig=kubeconfig, context=context, namespace=namespace, options=options)
    return Client(made, loop=loop)
