"""List the fields of features that are off: ``python -m tools.kubernetes.features``.

A real server drops them. The published types say which feature a field belongs to, and a running server says which
features are on (``make kube`` first). ``[off]`` in ``tools/builtin_tables/hand_kept.toml`` has those that the
embedded server drops; what is printed is not there.
"""

from __future__ import annotations

import re
import ssl
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.kubernetes.go_modules import folder_of, library_version

from deltaloop.api.kubernetes_version import KUBERNETES
from deltaloop.testing.control_plane import ControlPlane, ControlPlaneError, find_assets

HAND_KEPT: Final = Path(__file__).parents[1] / "builtin_tables" / "hand_kept.toml"
HERE: Final = Path(__file__).parents[1] / "protobuf_table"
_LINE: Final = re.compile(
    r"type (?P<type>\w+) struct|// \+featureGate=(?P<gates>\S+)|^\s+\w+\s+\S+.*json:\"(?P<field>\w+)", re.MULTILINE
)
_FEATURE: Final = re.compile(r'kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} 0')


def gated(source: str) -> Iterator[tuple[str, str, set[str]]]:
    """Yield type, field and features of the fields in a file of Go types that belong to features."""
    name = ""
    gates: set[str] = set()
    for match in _LINE.finditer(source):
        if match["type"]:
            name, gates = match["type"], set[str]()
        elif match["gates"]:
            gates = set(match["gates"].split(","))
        else:
            if gates:
                yield name, match["field"], gates
            gates = set[str]()


def features_off() -> set[str]:
    """Ask a real server which features are off.

    Raises:
        ControlPlaneError: If there is none.
    """
    assets = find_assets()
    if assets is None:
        raise ControlPlaneError("no kube-apiserver: run `make kube`")
    with ControlPlane(assets) as plane:
        context = ssl.create_default_context(cadata=plane.ca_pem.decode())
        headers = {"Authorization": f"Bearer {plane.token.reveal()}"}
        request = urllib.request.Request(f"{plane.url}/metrics", headers=headers)  # noqa: S310 - https on loopback
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:  # noqa: S310 - same
            return set(_FEATURE.findall(answer.read().decode()))


def main() -> None:
    """Print a line for each field, with the features that it needs."""
    off = features_off()
    known = tomllib.loads(HAND_KEPT.read_text())["off"]
    folder = folder_of("k8s.io/api", library_version(KUBERNETES), HERE)
    for path in sorted(folder.glob("*/v[1-9]/types.go")):
        group, version = path.parts[-3:-1]
        for name, field, gates in gated(path.read_text()):
            called = f"{group}.{version}.{name}"
            if gates & off and field not in known.get(called, ()):
                print(f"{called} {field}: {', '.join(sorted(gates & off))}")


if __name__ == "__main__":
    main()
