"""Load the configuration and create a client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from deltaloop.client.client import Client
from deltaloop.client.config import ClientConfig
from deltaloop.client.errors import ConfigError
from deltaloop.client.kubeconfig.loading import default_kubeconfig, find_kubeconfigs, load_kubeconfig
from deltaloop.client.options import ClientOptions

_DEFAULTS: Final = ClientOptions()


def load_config(
    *,
    kubeconfig: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    context: str | None = None,
    namespace: str | None = None,
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    service_account: Path | None = None,
) -> ClientConfig:
    """Load the client configuration from the first available source.

    The sources are ``kubeconfig``, the variable ``KUBECONFIG``, ``~/.kube/config``, and the pod's service account.

    Args:
        kubeconfig: Path of a kubeconfig, or its content.
        context: Name of the context. None means the current context.
        namespace: Default namespace. None means the context's namespace.
        environ: Environment variables.
        home: Home directory. None means the user's home directory.
        service_account: Directory of the pod's service account. None means the usual one.

    Raises:
        ConfigError: If no configuration exists, or it is not usable.
    """
    if kubeconfig is not None:
        return load_kubeconfig(kubeconfig, context=context, namespace=namespace)
    found = find_kubeconfigs(environ, home=home)
    if found:
        return load_kubeconfig(*found, context=context, namespace=namespace)
    if context is None:
        from deltaloop.client.kubeconfig.in_cluster import SERVICE_ACCOUNT, is_in_cluster, load_in_cluster

        place = service_account or SERVICE_ACCOUNT
        if is_in_cluster(environ, service_account=place):
            return load_in_cluster(environ, namespace=namespace, service_account=place)
    wanted = f" for context {context!r}" if context is not None else ""
    default = default_kubeconfig(home)
    raise ConfigError(
        f"no configuration{wanted}: no kubeconfig was passed, KUBECONFIG is not set, "
        f"{default or 'a home directory'} does not exist, and this is not a pod with a service account"
    )


def connect(
    *,
    kubeconfig: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    context: str | None = None,
    namespace: str | None = None,
    options: ClientOptions = _DEFAULTS,
) -> Client:
    """Create a client for the cluster that kubectl uses.

    No request is sent yet.

    Use it as ``async with connect() as client:``.

    Args:
        kubeconfig: Path of a kubeconfig, or its content. By default, ``KUBECONFIG``, ``~/.kube/config`` and the pod's
            service account are tried in this order.
        context: Name of the context. None means the current context.
        namespace: Default namespace. None means the context's namespace.
        options: Client options, such as rate limit and field manager.

    Raises:
        ConfigError: If no configuration exists, or it is not usable. The message names the source and the remedy.
    """
    return Client(load_config(kubeconfig=kubeconfig, context=context, namespace=namespace), options=options)
