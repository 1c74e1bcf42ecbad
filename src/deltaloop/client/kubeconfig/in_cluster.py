"""Client configuration from the service account of a pod.

Source: client-go rest/config.go, ``InClusterConfig``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deltaloop.client.bounded_files import MIB, read_file
from deltaloop.client.config import ClientConfig, TlsConfig
from deltaloop.client.credentials.sources import TokenFile
from deltaloop.client.errors import ConfigError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SOURCE: Final = "in-cluster configuration"
_HOST: Final = "KUBERNETES_SERVICE_HOST"
_PORT: Final = "KUBERNETES_SERVICE_PORT"


def is_in_cluster(environ: Mapping[str, str] = os.environ, *, service_account: Path = SERVICE_ACCOUNT) -> bool:
    """Return whether the process appears to run in a pod with a service account."""
    return bool(environ.get(_HOST) and environ.get(_PORT)) and _is_file(service_account / "token")


def load_in_cluster(
    environ: Mapping[str, str] = os.environ,
    *,
    namespace: str | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> ClientConfig:
    """Load the configuration of the pod.

    Args:
        environ: Environment with ``KUBERNETES_SERVICE_HOST`` and ``KUBERNETES_SERVICE_PORT``.
        namespace: Default namespace. None means the pod's namespace.
        service_account: Directory with ``token``, ``ca.crt`` and ``namespace``.

    Raises:
        ConfigError: If the process does not run in a pod, or a file is missing.
    """
    host, port = environ.get(_HOST, ""), environ.get(_PORT, "")
    if not host or not port:
        raise ConfigError(
            f"must be set together with {_PORT}. Run the program in a cluster, or pass a kubeconfig.", argument=_HOST
        )
    token_file = service_account / "token"
    if not _read(token_file):
        raise ConfigError("must contain a token, got an empty file.", argument=str(token_file)).at(_SOURCE)
    ca_file = service_account / "ca.crt"
    if not _is_file(ca_file):
        raise ConfigError("must exist, to verify the server.", argument=str(ca_file)).at(_SOURCE)
    try:
        own_namespace = _read(service_account / "namespace")
    except ConfigError:
        own_namespace = ""
    return ClientConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace or own_namespace or "default",
        tls=TlsConfig(ca_file=ca_file),
        credentials=TokenFile(token_file),
        source="in-cluster service account",
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _read(path: Path) -> str:
    try:
        return read_file(path, most=MIB).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "the content is not UTF-8"
        raise ConfigError(f"must be readable: {reason}.", argument=str(path)).at(_SOURCE) from None
