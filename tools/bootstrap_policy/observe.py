"""Ask a real kube-apiserver which roles and bindings it makes: ``python -m tools.bootstrap_policy.observe``.

It starts a server (``make kube`` first), reads its roles and bindings, and writes ``bootstrap_policy.json.gz`` of
``deltaloop.apiserver``. Uids, times and versions are left out, so that the same server gives the same file.
"""

from __future__ import annotations

import gzip
import ssl
import urllib.request
from pathlib import Path
from typing import Any, Final

import msgspec

from deltaloop.testing.control_plane import ControlPlane, ControlPlaneError, find_assets

TARGET: Final = Path(__file__).parents[2] / "src" / "deltaloop" / "apiserver" / "bootstrap_policy.json.gz"
PLURALS: Final = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
_OF_THE_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "selfLink")
_SECONDS: Final = 20.0


def shown(fields: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what differs from server to server."""
    metadata = {name: value for name, value in fields["metadata"].items() if name not in _OF_THE_SERVER}
    for entry in metadata.get("managedFields", []):
        del entry["time"]
    rest = {name: value for name, value in fields.items() if name not in ("metadata", "kind", "apiVersion")}
    return {"metadata": metadata, **rest}


def observed(plane: ControlPlane) -> dict[str, list[dict[str, Any]]]:
    """Return the objects of a new server by plural, in their names' order."""
    context = ssl.create_default_context(cadata=plane.ca_pem.decode())
    headers = {"Authorization": f"Bearer {plane.token.reveal()}", "Accept": "application/json"}
    found: dict[str, list[dict[str, Any]]] = {}
    for plural in PLURALS:
        url = f"{plane.url}/apis/rbac.authorization.k8s.io/v1/{plural}"
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - https on loopback
        with urllib.request.urlopen(request, timeout=_SECONDS, context=context) as answer:  # noqa: S310 - same
            found[plural] = [shown(item) for item in msgspec.json.decode(answer.read())["items"]]
    return found


def main() -> None:
    """Write the file.

    Raises:
        ControlPlaneError: If there is no server to ask.
    """
    assets = find_assets()
    if assets is None:
        raise ControlPlaneError("no kube-apiserver: run `make kube`")
    with ControlPlane(assets) as plane:
        found = observed(plane)
    content = msgspec.json.encode({"kubernetes": assets.version, "policy": found}, order="sorted")
    TARGET.write_bytes(gzip.compress(content, 9, mtime=0))
    print(f"{TARGET.name}: {sum(map(len, found.values()))} objects of {assets.version}")


if __name__ == "__main__":
    main()
