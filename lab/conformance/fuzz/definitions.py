"""A custom resource that a sequence defines, changes and deletes on the way.

Each sequence has an API group of its own, so that what one leaves behind is nothing to the next. A real server serves
what a definition says a moment after it was written: each one that is sent gets a printer column with a name of its
own, and a sequence goes on when a table has that column. What is compared is the definition as it is then.
"""

from __future__ import annotations

import copy
from typing import Any, Final, cast

from hypothesis import strategies as st
from tests.conformance.target import CRDS, Api

from lab.conformance.fuzz.resources import SMALL, WORDS, Resource, some
from lab.conformance.fuzz.steps import MERGE, Step

PLURAL: Final = "things"
# The real server removes a definition that it has just begun to serve in its own time, above all beside others.
SETTLING: Final = 60.0
GROUP: Final = "NAMESPACE.example.com"
NAME: Final = f"{PLURAL}.{GROUP}"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_VERSIONS: Final = ("v1", "v2")
KIND: Final = "CustomResourceDefinition"

_SPEC: Final = some(size=SMALL, word=st.sampled_from(["", "ab", "abcd", None]), mode=st.just("odd"), more=WORDS)
_STATUS: Final = some(size=SMALL, word=WORDS)
THINGS: Final = tuple(
    Resource(
        kind="Thing", api_version=f"{GROUP}/{version}", plural=PLURAL, status=True, custom=True,
        spec=some(spec=_SPEC, status=_STATUS), changes=some(spec=_SPEC, status=_STATUS),
        pointers=("/spec", "/spec/size", "/spec/word", "/spec/mode", "/status"),
    )
    for version in _VERSIONS
)  # fmt: skip


def _schema(**fields: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": fields}
    status = {"type": "object", "properties": {"size": {"type": "integer"}}}
    return {"type": "object", "properties": {"spec": spec, "status": status}}


_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_SCHEMAS: Final[tuple[dict[str, Any], ...]] = (
    _schema(size=_NUMBER, word=_TEXT),
    _schema(size={**_NUMBER, "default": 7}, word=_TEXT, mode={**_TEXT, "default": "plain"}),
    # A field that objects have is not known any more; one is narrower; one has another type.
    _schema(size=_NUMBER, mode=_TEXT),
    _schema(size={**_NUMBER, "minimum": 0, "maximum": 3}, word={**_TEXT, "maxLength": 2, "nullable": True}),
    _schema(size=_TEXT, word=_TEXT),
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    # None of these is a schema that may be stored.
    _schema(size={**_NUMBER, "default": "x"}),
    {"type": "object", "properties": {"spec": {}}},
)
_COLUMNS: Final = st.lists(
    st.sampled_from(
        [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Word", "type": "string", "jsonPath": ".spec.word", "priority": 1},
            {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "description": "how"},
            {"name": "Names", "type": "string", "jsonPath": ".metadata.labels.app"},
        ]
    ),
    max_size=2,
)


@st.composite
def _versions(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.sampled_from([("v1",), ("v1",), ("v1", "v2"), ("v1", "v2"), ("v2", "v1"), ("v2",)]))
    stored = draw(st.sampled_from(names))
    status = draw(st.booleans())
    schemas = st.sampled_from([*_SCHEMAS[:-2], *_SCHEMAS[:-2], *_SCHEMAS])
    result: list[dict[str, Any]] = []
    for name in names:
        version: dict[str, Any] = {
            "name": name,
            "served": draw(st.integers(0, 7)) != 0,
            "storage": name == stored,
            "schema": {"openAPIV3Schema": draw(schemas)},
            "additionalPrinterColumns": draw(_COLUMNS),
        }
        if status:
            version["subresources"] = {"status": {}}
        result.append(version)
    return result


@st.composite
def creates(draw: st.DrawFn) -> Step:
    """Define the resource."""
    names = {"plural": PLURAL, "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    body = {
        "kind": KIND,
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": NAME},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": draw(_versions())},
    }
    return Step("POST", CRDS, (), body)


@st.composite
def changes(draw: st.DrawFn) -> Step:
    """Change, read or delete the definition."""
    path = f"{CRDS}/{NAME}"
    match draw(st.sampled_from(["put", "patch", "patch", "delete", "get"])):
        case "put":
            return Step("PUT", path, (), {"$object:0": {"spec": {"versions": draw(_versions())}}})
        case "patch":
            return Step("PATCH", path, (), {"spec": {"versions": draw(_versions())}}, MERGE)
        case "delete":
            return Step("DELETE", path)
        case _:
            return Step("GET", path)


@st.composite
def tables(draw: st.DrawFn) -> Step:
    """Read objects as kubectl shows them."""
    resource = draw(st.sampled_from(THINGS))
    name = draw(st.sampled_from(["", "/a"]))
    return Step("GET", resource.path + name, accept=TABLE)


def defines(step: Step) -> bool:
    """Tell whether a step is about a definition."""
    return step.path.startswith(CRDS)


def marked(body: Any, number: int) -> Any:
    """Return the body of a step with a column by which it is known that it is served."""
    if not isinstance(body, dict):
        return cast("object", body)
    result: dict[str, Any] = copy.deepcopy(cast("dict[str, Any]", body))
    if "$object:0" in result:
        return {"$object:0": marked(result["$object:0"], number)}
    for version in result.get("spec", {}).get("versions", ()):
        column = {"name": f"Marker {number}", "type": "string", "jsonPath": ".kind"}
        version["additionalPrinterColumns"] = [*version.get("additionalPrinterColumns", ()), column]
    return result


async def settled(api: Api, namespace: str) -> Any:
    """Wait until the server serves what the definition says, and return that; None if there is none."""
    found: list[Any] = []

    async def ask() -> bool:
        answer = await api.get(f"{CRDS}/{NAME.replace('NAMESPACE', namespace)}")
        found[:] = [answer.json if answer.status == 200 else None]
        return await _serves(api, namespace, found[0])

    await api.eventually(ask, seconds=SETTLING)
    return found[0]


async def _serves(api: Api, namespace: str, crd: Any) -> bool:
    if crd is not None:
        conditions = {each["type"]: each["status"] for each in crd.get("status", {}).get("conditions") or ()}
        if crd["metadata"].get("deletionTimestamp") or {"NamesAccepted", "Established"} - conditions.keys():
            return False
        if conditions["Established"] != "True":
            return False
    versions = {each["name"]: each for each in crd["spec"]["versions"] if each["served"]} if crd is not None else {}
    for resource in THINGS:
        answer = await api.call("GET", resource.path.replace("NAMESPACE", namespace), Accept=TABLE)
        version = versions.get(resource.api_version.rpartition("/")[2])
        if version is None:
            if answer.status != 404:
                return False
        elif answer.status != 200 or answer.json["columnDefinitions"][-1]["name"] != _last_column(version):
            return False
    return True


def _last_column(version: dict[str, Any]) -> str:
    return str(version["additionalPrinterColumns"][-1]["name"])
