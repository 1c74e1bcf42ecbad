"""Places and flags of a real kube-apiserver and etcd, without processes.

The places are searched in the order of controller-runtime's envtest, with deltaloop's cache after the variables:

    TEST_ASSET_KUBE_APISERVER, TEST_ASSET_ETCD      one binary each
    KUBEBUILDER_ASSETS                              a folder with both
    <cache>/deltaloop/kube/<version>-<os>-<arch>    built by ``make -C lab kube``: deltaloop's version, then the newest
    /usr/local/kubebuilder/bin                      envtest's default

Source: controller-runtime pkg/internal/testing/process/bin_path_finder.go and controlplane/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

KUBE_APISERVER: Final = "kube-apiserver"
ETCD: Final = "etcd"
DEFAULT_FOLDER: Final = Path("/usr/local/kubebuilder/bin")
_CACHED: Final = re.compile(r"v(\d+)\.(\d+)\.(\d+)-[a-z0-9]+-[a-z0-9_]+")
_CONTEXT: Final = "deltaloop-real"


def cache_root(environ: Mapping[str, str], home: Path) -> Path:
    base = environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else home / ".cache") / "deltaloop" / "kube"


def cache_folder_name(version: str, *, system: str, machine: str) -> str:
    """Return the name of a version's folder, such as ``v1.36.3-linux-amd64``."""
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    return f"{version}-{system.lower()}-{names.get(machine.lower(), machine.lower())}"


def best_first(folder_names: Iterable[str], version: str) -> list[str]:
    """Return the folders of a cache that are versions: ``version`` first, then the newest."""
    found = [
        (tuple(int(part) for part in match.groups()), match.string)
        for match in map(_CACHED.fullmatch, folder_names)
        if match
    ]
    return [name for _, name in sorted(found, key=lambda each: (each[1].startswith(f"{version}-"), each), reverse=True)]


def candidates(binary: str, environ: Mapping[str, str], cached: Iterable[Path]) -> list[Path]:
    """Return the possible places of a binary, the preferred place first; ``cached`` are folders of the cache."""
    named = named_place(binary, environ)
    return [named] if named else [*(place / binary for place in cached), DEFAULT_FOLDER / binary]


def named_place(binary: str, environ: Mapping[str, str]) -> Path | None:
    named = environ.get("TEST_ASSET_" + binary.upper().replace("-", "_"), "")
    folder = environ.get("KUBEBUILDER_ASSETS", "")
    return Path(named) if named else Path(folder) / binary if folder else None


def etcd_arguments(*, folder: Path, client_port: int, peer_port: int) -> list[str]:
    """Return etcd's flags: loopback, no fsync, data in ``folder``."""
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver_arguments(*, folder: Path, port: int, etcd_port: int, extra: Iterable[str] = ()) -> list[str]:
    """Return kube-apiserver's flags; ``folder`` must contain ``tokens.csv`` and ``service-accounts.key``."""
    key = folder / "service-accounts.key"
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--service-account-issuer=https://127.0.0.1:{port}/",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--endpoint-reconciler-type=none",
        *extra,
    ]


def token_file(token: str) -> str:
    return f'{token},admin,admin,"system:masters"\n'


def kubeconfig(*, url: str, ca_data: str, token: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": _CONTEXT,
        "clusters": [{"name": _CONTEXT, "cluster": {"server": url, "certificate-authority-data": ca_data}}],
        "users": [{"name": _CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": _CONTEXT, "context": {"cluster": _CONTEXT, "user": _CONTEXT, "namespace": "default"}}],
    }
