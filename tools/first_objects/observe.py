"""Ask a real kube-apiserver what it has from the start: ``python -m tools.first_objects.observe``.

It starts a server (``make -C lab kube`` first), reads its roles and bindings and what its flow control is made of, and
writes ``bootstrap_policy.json.gz`` and ``flow_control.json.gz`` of ``deltaloop.apiserver``. Uids, times and versions
are left out, so that the same server gives the same files.
"""

from __future__ import annotations

import gzip
import ssl
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from deltaloop.testing.servers.control_plane import ControlPlane, ControlPlaneError, find_assets

FOLDER: Final = Path(__file__).parents[2] / "src" / "deltaloop" / "apiserver"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_FLOW: Final = "flowcontrol.apiserver.k8s.io/v1"
FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "bootstrap_policy": tuple(
        f"{_RBAC}/{plural}" for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    ),
    "flow_control": (f"{_FLOW}/flowschemas", f"{_FLOW}/prioritylevelconfigurations"),
}
_OF_THE_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "selfLink")
_SECONDS: Final = 20.0
_TRIES: Final = 10_000


def shown(fields: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what differs from server to server."""
    metadata = {name: value for name, value in fields["metadata"].items() if name not in _OF_THE_SERVER}
    conditions = fields.get("status", {}).get("conditions", [])
    for entry in (*metadata.get("managedFields", []), *conditions):
        for name in ("time", "lastTransitionTime"):
            entry.pop(name, None)
    rest = {name: value for name, value in fields.items() if name not in ("metadata", "kind", "apiVersion")}
    return {"metadata": metadata, **rest}


def settled(plane: ControlPlane) -> None:
    """Wait until a controller of the server has said of each FlowSchema whether its priority level is there."""
    path = FILES["flow_control"][0]
    if not any(all(item["status"].get("conditions") for item in observed(plane, path)) for _ in range(_TRIES)):
        raise ControlPlaneError("FlowSchemas have no conditions")


def observed(plane: ControlPlane, path: str) -> list[dict[str, Any]]:
    """Return the objects of a new server, in their names' order."""
    context = ssl.create_default_context(cadata=plane.ca_pem.decode())
    headers = {"Authorization": f"Bearer {plane.token.reveal()}", "Accept": "application/json"}
    request = urllib.request.Request(f"{plane.url}/apis/{path}", headers=headers)  # noqa: S310 - https on loopback
    with urllib.request.urlopen(request, timeout=_SECONDS, context=context) as answer:  # noqa: S310 - same
        return [shown(item) for item in msgspec.json.decode(answer.read())["items"]]


def main() -> None:
    """Write the files.

    Raises:
        ControlPlaneError: If there is no server to ask.
    """
    assets = find_assets()
    if assets is None:
        raise ControlPlaneError("no kube-apiserver: run `make -C lab kube`")
    with ControlPlane(assets) as plane:
        settled(plane)
        for name, paths in FILES.items():
            found = {path: observed(plane, path) for path in paths}
            content = msgspec.json.encode({"kubernetes": assets.version, "objects": found}, order="sorted")
            target = FOLDER / f"{name}.json.gz"
            target.write_bytes(gzip.compress(content, 9, mtime=0))
            count = sum(map(len, found.values()))
            print(f"{target.name}: {count} objects of {assets.version}, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
