"""Ask a real kube-apiserver what no schema says: ``python -m tools.builtin_tables.observe``.

It starts the server of ``make -C lab kube``, reads its discovery documents, the columns of every kind's table, and
tries which fields can be selected by, and writes ``observed.json``, from which ``generate.py`` makes the data file.
From its OpenAPI documents it writes ``schema_additions.json.gz`` of ``deltaloop.apiserver``: what the published schemas
lack, without sentences. Only stable versions are looked at. Nothing of this machine or of the time gets into the files,
so that the same server gives the same files.
"""

from __future__ import annotations

import gzip
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec
from tools.builtin_tables.generate import SERVER, Types, definitions, schema_names, short_name

from deltaloop.apiserver.core.answers.published import PublishedSchemas
from deltaloop.testing.servers.control_plane import ControlPlane, ControlPlaneError, find_assets

TARGET: Final = Path(__file__).with_name("observed.json")
ADDITIONS: Final = SERVER / "schema_additions.json.gz"
# Sentences are not ours to keep, references are published, and the kinds that options belong to vary by document.
_PASSED_OVER: Final = ("description", "$ref", "allOf", "x-kubernetes-group-version-kind")
_STABLE: Final = re.compile(r"v[0-9]+")
_TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
_SECONDS: Final = 20.0
# Labels that are no paths of fields.
_OTHER_LABELS: Final = ("source", "reportingComponent", "name", "status.podIPs", "status.successful")
_NO_LABEL: Final = "noSuchLabel"
_BAD: Final = 400
_DEPTH: Final = 2


class Server:
    """Reads from one server."""

    def __init__(self, plane: ControlPlane) -> None:
        """Read from this one."""
        self._url = plane.url
        self._context = ssl.create_default_context(cadata=plane.ca_pem.decode())
        self._headers = {"Authorization": f"Bearer {plane.token.reveal()}"}

    def get(self, path: str, *, accept: str = "application/json") -> tuple[int, dict[str, Any]]:
        """Return the status and the document of an answer."""
        request = urllib.request.Request(self._url + path, headers={**self._headers, "Accept": accept})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS, context=self._context) as answer:  # noqa: S310
                return answer.status, msgspec.json.decode(answer.read(), type=dict[str, Any])
        except urllib.error.HTTPError as error:
            return error.code, msgspec.json.decode(error.read(), type=dict[str, Any])


def group_versions(server: Server) -> Iterator[tuple[str, str, str]]:
    """Return group, version and path of what is served and stable."""
    yield "", "v1", "/api/v1"
    for group in server.get("/apis")[1]["groups"]:
        for version in group["versions"]:
            if _STABLE.fullmatch(version["version"]):
                yield group["name"], version["version"], f"/apis/{version['groupVersion']}"


def observe(server: Server) -> list[dict[str, Any]]:
    """Return what is known of each kind, in the order of discovery."""
    found: list[dict[str, Any]] = []
    for group, version, path in group_versions(server):
        document = server.get(path)[1]
        kinds: dict[str, dict[str, Any]] = {}
        for resource in document["resources"]:
            plural, _, below = resource["name"].partition("/")
            if not below:
                kinds[plural] = _kind(server, group, version, path, resource)
            elif plural in kinds and resource["kind"] in (kinds[plural]["kind"], "Scale"):
                # What takes and gives another kind has a form of its own, which the program knows.
                kinds[plural]["subresources"][below] = resource["verbs"]
        found += kinds.values()
    return found


def priorities(server: Server) -> dict[str, tuple[int, int]]:
    """Return those of each group version: of the group and of the version."""
    found: dict[str, tuple[int, int]] = {}
    for item in server.get("/apis/apiregistration.k8s.io/v1/apiservices")[1]["items"]:
        spec = item["spec"]
        name = f"{spec['group']}/{spec['version']}" if "group" in spec else spec["version"]
        found[name] = spec["groupPriorityMinimum"], spec["versionPriority"]
    return dict(sorted(found.items()))


def _kind(server: Server, group: str, version: str, path: str, resource: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "group": group,
        "version": version,
        "kind": resource["kind"],
        "plural": resource["name"],
        "namespaced": resource["namespaced"],
        "verbs": resource["verbs"],
        "short_names": resource.get("shortNames", []),
        "categories": resource.get("categories", []),
        "subresources": {},
    }
    if "list" in resource["verbs"]:
        address = f"{path}/{resource['name']}"
        definitions = server.get(address, accept=_TABLE)[1]["columnDefinitions"]
        names = ("name", "type", "format", "priority")  # descriptions are sentences, not facts
        entry["columns"] = [
            {name: definition[name] for name in names if definition[name]} for definition in definitions
        ]
        entry["field_labels"] = [label for label in _candidates(entry) if _select(server, address, label)[0] != _BAD]
        if entry["field_labels"]:
            entry["label_refusal"] = _select(server, address, _NO_LABEL)[1]["message"].replace(_NO_LABEL, "{}")
    return entry


def _select(server: Server, address: str, label: str) -> tuple[int, dict[str, Any]]:
    return server.get(f"{address}?limit=1&fieldSelector={quote(label)}%3Dx")


def _candidates(entry: dict[str, Any]) -> list[str]:
    """Return the paths of a kind's fields that hold one value; name and namespace go without saying."""
    name = schema_names(_schemas()).get((entry["group"], entry["version"], entry["kind"]))
    types = Types(_schemas())
    if name is not None:
        types.add(name)
    paths = list(_leaves(types, short_name(name), "", _DEPTH)) if name is not None else []
    return sorted({path for path in (*paths, *_OTHER_LABELS) if not path.startswith("metadata.")})


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    return definitions()


def _leaves(types: Types, name: str, prefix: str, depth: int) -> Iterator[str]:
    for field, shape in types.made[name]["fields"].items():
        word = shape if isinstance(shape, str) else shape.get("type", "")
        if word.startswith("#"):
            if depth > 1:
                yield from _leaves(types, word[1:], f"{prefix}{field}.", depth - 1)
        elif word:
            yield prefix + field


def schema_additions(server: Server) -> dict[str, object]:
    """Return what the server's schemas say beside the published ones, by name."""
    published = PublishedSchemas(_schemas())
    found: dict[str, object] = {}
    for _, _, path in group_versions(server):
        document = server.get(f"/openapi/v3{path}")[1]
        for name, schema in document["components"]["schemas"].items():
            ours: dict[str, Any] = {}
            published.add_to(ours, name)
            if more := _additions(ours[name], schema):
                found[name] = more
    return found


def _additions(ours: Mapping[str, Any], theirs: Mapping[str, Any], *, of_fields: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in theirs.items():
        if of_fields or name not in _PASSED_OVER:
            old = ours.get(name)
            if isinstance(old, dict) and isinstance(value, dict):
                below = cast("dict[str, Any]", old), cast("dict[str, Any]", value)
                if more := _additions(*below, of_fields=name == "properties" and not of_fields):
                    found[name] = more
            elif old != value:
                found[name] = value
    return found


def main() -> None:
    """Write the file."""
    assets = find_assets()
    if assets is None:
        raise ControlPlaneError("there is no kube-apiserver: run `make -C lab kube`")
    with ControlPlane(assets) as plane:
        server = Server(plane)
        content = {"kubernetes": assets.version, "priorities": priorities(server), "kinds": observe(server)}
        additions = schema_additions(server)
    lines = msgspec.json.format(msgspec.json.encode(cast("Any", content)), indent=1)
    TARGET.write_bytes(lines + b"\n")
    ADDITIONS.write_bytes(gzip.compress(msgspec.json.encode(additions, order="sorted"), 9, mtime=0))
    print(f"{ADDITIONS.name}: of {len(additions)} schemas, {ADDITIONS.stat().st_size} bytes")
    print(f"{TARGET.name}: {len(content['kinds'])} kinds of Kubernetes {assets.version}")


if __name__ == "__main__":
    main()
