"""Finds the configuration of this place and makes a client of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from deltaloop.client.client import Client
from deltaloop.client.config import ClientConfig
from deltaloop.client.errors import ConfigError
from deltaloop.client.kubeconfig.in_cluster import SERVICE_ACCOUNT, is_in_cluster, load_in_cluster
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
    service_account: Path = SERVICE_ACCOUNT,
) -> ClientConfig:
    """Find the configuration: the kubeconfig given, else ``KUBECONFIG``, else ``~/.kube/config``, else the pod's own.

    Args:
        kubeconfig: A file, or the content of one.
        context: Name of the context, if not the current one.
        namespace: Default namespace, if not the context's.
        environ: Environment variables.
        home: Home directory; that of the user by default.
        service_account: Where a pod has its service account.

    Raises:
        ConfigError: If there is none, or it cannot be used.
    """
    if kubeconfig is not None:
        return load_kubeconfig(kubeconfig, context=context, namespace=namespace)
    found = find_kubeconfigs(environ, home=home)
    if found:
        return load_kubeconfig(*found, context=context, namespace=namespace)
    if context is None and is_in_cluster(environ, service_account=service_account):
        return load_in_cluster(environ, namespace=namespace, service_account=service_account)
    wanted = f" for context {context!r}" if context is not None else ""
    default = default_kubeconfig(home)
    raise ConfigError(
        f"no configuration{wanted}: no kubeconfig was given, KUBECONFIG is not set, "
        f"{default or 'a home directory'} does not exist, and this is not a pod with a service account"
    )


def connect(
    *,
    kubeconfig: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    context: str | None = None,
    namespace: str | None = None,
    options: ClientOptions = _DEFAULTS,
) -> Client:
    """Make a client for the cluster that kubectl would use here; nothing is sent yet.

    Use it as ``async with connect() as client:``.

    Args:
        kubeconfig: A file, or the content of one; else ``KUBECONFIG``, ``~/.kube/config``, the pod's service account.
        context: Name of the context, if not the current one.
        namespace: Default namespace, if not the context's.
        options: Manners of the client: rate, field manager, warnings, metrics.

    Raises:
        ConfigError: If there is no configuration, or it cannot be used; the message says where and what to do.
    """
    return Client(load_config(kubeconfig=kubeconfig, context=context, namespace=namespace), options=options)
