"""Read what the published Go types are tagged with: ``python -m tools.builtin_tables.tags``.

The types of a version say of many fields what their values may be (``+k8s:required`` and its kin), and which feature a
field belongs to (``+featureGate``); a running server says which features are off (``make -C lab kube`` first).
``tags.json`` has all of it for ``generate.py``:

    rules     by type and field, what deltaloop.schemas.checking (``FieldRule``) makes of the tags
    unread    how often there is a tag that it makes nothing of
    off       by type, the fields of features that are off, which a server drops

A tag that is ``alpha`` is a comparison that a server makes for itself, and counts for nothing; ``beta`` counts.

Source: k8s.io/code-generator cmd/validation-gen; KEP-5073.
"""

from __future__ import annotations

import re
import ssl
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from tools.kubernetes.go_modules import folder_of, library_version

from deltaloop.api.kubernetes_version import KUBERNETES
from deltaloop.testing.servers.control_plane import ControlPlane, ControlPlaneError, find_assets

TARGET: Final = Path(__file__).with_name("tags.json")
# Where go is run, whose go.mod has the modules.
_GO: Final = Path(__file__).parents[1] / "protobuf_table"
_LINE: Final = re.compile(
    r"""
      ^type\ (?P<type>\w+)\ struct | ^type\ (?P<text>\w+)\ string
    | ^\s*//\ ?\+k8s:(?P<tag>.*) | ^\s*//\ ?\+featureGate=(?P<gates>\S+)
    | ^\s+\w+\s+(?P<list>\[\])?\*?(?P<of>[\w.\[\]]+)\s.*json:"(?P<field>\w+)
    | ^\s+\w+\s+(?P<const>\w+)\s+=\ "(?P<value>[^"]*)"
    | ^\s+\w+\s+=\ (?P<of_const>\w+)\((?:"(?P<in_const>[^"]*)"|v1\.(?P<named>\w+))\)
    | ^(?P<embedded>\s+[\w.]+\s+`) | ^(?P<blank>)\s*$
    """,
    re.MULTILINE | re.VERBOSE,
)
_TAG: Final = re.compile(r"(?P<name>\w+)(?:\((?P<argument>.*?)\))?(?:=(?P<rest>.*))?")
_FEATURE: Final = re.compile(r'kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} 0')
_FLAGS: Final = {"required": "required", "optional": "optional", "immutable": "fixed"}
_NUMBERS: Final = {"minimum": "min", "maximum": "max", "maxItems": "longest", "maxLength": "longest"}
_FORMATS: Final = {"k8s-long-name": "subdomain", "k8s-short-name": "label"}
# What says nothing of a value.
_OTHER: Final = (
    "deepcopy",
    "supportsSubresource",
    "isSubresource",
    "prerelease",
    "opaqueType",
    "conversion",
    "openapi",
)
Rule = dict[str, object]


class Tags:
    """Collects what the tags of some files say."""

    def __init__(self, off: set[str]) -> None:
        """Count what belongs to features by those that are off."""
        self.features_off = off
        self.rules: dict[str, dict[str, Rule]] = {}
        self.off: dict[str, list[str]] = {}
        self.unread = Counter[str]()

    def read(self, source: str, package: str) -> None:
        """Read a file of Go types."""
        values: dict[str, list[str]] = {}
        for match in _LINE.finditer(source):
            if match["const"]:
                values.setdefault(match["const"], []).append(match["value"])
            elif match["of_const"]:
                value = match["in_const"] or match["named"].removesuffix("Protocol")
                values.setdefault(match["of_const"], []).append(value)
        enums: dict[str, list[str]] = {}
        for name, tags in self._texts(source):
            rule: Rule = {}
            for tag in tags:
                self._apply(tag, rule, values.get(name, []))
            if "enum" in rule:
                enums[name] = sorted(values[name])
        for struct, match, tags, gates in self._fields(source):
            name, field = f"{package}.{struct}", match["field"]
            if gates & self.features_off:
                self.off.setdefault(name, []).append(field)
            rule = {}
            for tag in tags:
                self._apply(tag, rule, [])
            if match["of"] in enums:
                found: Rule = {"enum": enums[match["of"]]}
                rule.update({"each": found} if match["list"] else found)
            if tags or rule:  # one without a rule keeps its place in the order
                self.rules.setdefault(name, {})[field] = rule

    def _texts(self, source: str) -> Iterator[tuple[str, list[str]]]:
        tags: list[str] = []
        for match in _LINE.finditer(source):
            if match["tag"]:
                tags.append(match["tag"])
            elif match["text"]:
                yield match["text"], tags
            if not match["tag"] and not match["gates"]:
                tags = []

    def _fields(self, source: str) -> Iterator[tuple[str, re.Match[str], list[str], set[str]]]:
        name, tags, gates = "", list[str](), set[str]()
        for match in _LINE.finditer(source):
            if match["tag"]:
                tags.append(match["tag"])
                continue
            if match["gates"]:
                gates = set(match["gates"].split(","))
                continue
            name = match["type"] or name
            if match["field"]:
                yield name, match, tags, gates
            tags, gates = [], set[str]()

    def _apply(self, tag: str, rule: Rule, values: list[str]) -> None:
        match = _TAG.match(tag)
        if match is None or match["name"] == "alpha":
            return
        name, rest = match["name"], (match["rest"] or "").strip('"')
        feature_off = (match["argument"] or "") in self.features_off
        if name == "beta" or (name == "ifEnabled" and not feature_off) or (name == "ifDisabled" and feature_off):
            self._apply(rest.removeprefix("+k8s:"), rule, values)
        elif name in _FLAGS:
            rule[_FLAGS[name]] = True
        elif name in _NUMBERS:
            rule[_NUMBERS[name]] = int(rest)
        elif name == "enum":
            rule["enum"] = values
        elif name == "format" and rest in _FORMATS:
            rule["checks"] = [_FORMATS[rest]]
        elif name not in (*_OTHER, "ifEnabled", "ifDisabled"):
            self.unread[f"{name}={rest}" if name == "format" else name] += 1


def features_off() -> set[str]:
    """Ask a real server which features are off.

    Raises:
        ControlPlaneError: If there is none.
    """
    assets = find_assets()
    if assets is None:
        raise ControlPlaneError("no kube-apiserver: run `make -C lab kube`")
    with ControlPlane(assets) as plane:
        context = ssl.create_default_context(cadata=plane.ca_pem.decode())
        headers = {"Authorization": f"Bearer {plane.token.reveal()}"}
        request = urllib.request.Request(f"{plane.url}/metrics", headers=headers)  # noqa: S310 - https on loopback
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:  # noqa: S310 - same
            return set(_FEATURE.findall(answer.read().decode()))


def main() -> None:
    """Write the file."""
    tags = Tags(features_off())
    folder = folder_of("k8s.io/api", library_version(KUBERNETES), _GO)
    for path in sorted(folder.glob("*/v[1-9]/types.go")):
        tags.read(path.read_text(), ".".join(path.parts[-3:-1]))
    content = {
        "kubernetes": f"v{KUBERNETES}",
        "off": {name: sorted(fields) for name, fields in sorted(tags.off.items())},
        "rules": {name: rules for name, rules in sorted(tags.rules.items()) if any(rules.values())},
        "unread": dict(sorted(tags.unread.items())),
    }
    TARGET.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
    print(f"{TARGET.name}: {sum(map(len, tags.rules.values()))} rules; {sum(tags.unread.values())} tags are not read")


if __name__ == "__main__":
    main()
