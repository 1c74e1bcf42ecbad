"""Makes the CRDs and objects of our own corpus: ``python -m lab.corpus.own.build`` writes the files beside it.

``shapes.jsonl`` has for each line of ``features.json`` a node with exactly these features in a node with exactly those;
what they hold (names, patterns, bounds) is ours. ``extras.jsonl`` has what Kubernetes knows and public schemas seldom
use, what is said about a whole CRD (scopes, versions, columns, subresources), and objects whose metadata is unusual.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.conformance.rule_facts import VALUES, struct
from tests.conformance.target import widget_crd

from lab.corpus.features import FILE, ITEM, PROPERTY, VALUE, Edge, Features, read
from lab.corpus.making import fullest, object_of, smallest
from lab.corpus.own.wrong import NODES, SEVERAL, TEXT, VERSIONS
from lab.corpus.schemas import PRESERVE, features_of, kinds_of

FOLDER: Final = Path(__file__).parent
GROUP: Final = "shapes.example.com"
_EXTRA_GROUP: Final = "extras.example.com"
# So many nodes of the outer kind are in one CRD.
AT_MOST: Final = 10
_KEY: Final = "name"

Part = dict[str, Any]

_BOUNDS: Final[Mapping[str, Any]] = {
    "maxLength": 12,
    "minLength": 2,
    "maxItems": 3,
    "minItems": 1,
    "maxProperties": 3,
    "minProperties": 1,
    "minimum": 1,
    "maximum": 9,
    "exclusiveMinimum": True,
    "exclusiveMaximum": True,
    "multipleOf": 2,
    "uniqueItems: false": False,
    "nullable": True,
    PRESERVE: True,
    "x-kubernetes-int-or-string": True,
    "x-kubernetes-embedded-resource": True,
}
_FALSE: Final = ": false"


def node(features: Features, parts: Sequence[tuple[str, Part]] = ()) -> Part:
    """Make a node that has exactly these features.

    Args:
        features: Of ``schemas.features_of``.
        parts: How and what is in it; what it has to hold and is not given is made.

    Raises:
        ValueError: If a feature is not known here.
    """
    made: Part = {}
    for feature in sorted(features):
        name, _, value = feature.partition(": ")
        if feature.endswith(_FALSE):
            made[name] = False
        elif feature in _BOUNDS:
            made[feature] = _BOUNDS[feature]
        elif name in ("type", "format", "x-kubernetes-list-type", "x-kubernetes-map-type"):
            made[name] = value
        elif name not in _LATER:
            raise ValueError(f"nothing is known of the feature {feature!r}")
    kind = made.get("type")
    if "pattern" in features:
        made["pattern"] = "^[a-z][a-z0-9-]*$" if kind == "string" else "^[0-9]+%?$"
    if "enum" in features:
        made["enum"] = ["alpha", "beta"]
    elif "enum: not of strings" in features:
        made["enum"] = [1, 2] if kind == "integer" else [True] if kind == "boolean" else ["alpha", 1]
    if "anyOf: type" in features:
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    _fill(made, features, parts)
    if "x-kubernetes-validations" in features:
        made["x-kubernetes-validations"] = [_rule(made)]
    if any(feature.startswith("default: ") for feature in features):
        made["default"] = smallest(made)
    if features_of(made) != features:
        raise ValueError(f"wanted {sorted(features)}, made {sorted(features_of(made))}")
    return made


_LATER: Final = frozenset(
    {
        "pattern",
        "enum",
        "anyOf",
        "oneOf",
        "default",
        "properties",
        "required",
        "additionalProperties",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
    }
)


def _fill(made: Part, features: Features, parts: Sequence[tuple[str, Part]]) -> None:
    keyed = "x-kubernetes-list-map-keys" in features
    if keyed:
        made["x-kubernetes-list-map-keys"] = [_KEY]
    if made.get("type") == "array":
        least: Part = {"type": "object", "required": [_KEY], "properties": {}} if keyed else {"type": "string"}
        given = next((part for how, part in parts if how == ITEM), least)
        made["items"] = _with_key(given) if keyed else given
    if "additionalProperties" in features:
        made["additionalProperties"] = next((part for how, part in parts if how == VALUE), {"type": "string"})
    if "properties" in features:
        inner = [part for how, part in parts if how == PROPERTY] or [{"type": "string"}]
        made["properties"] = {f"part{number}": part for number, part in enumerate(inner, 1)}
        if "required" in features:
            names = [name for name, part in made["properties"].items() if "default" not in part]
            made["required"] = names[:1] or list(made["properties"])[:1]
        if "oneOf: properties" in features:
            made["properties"]["choice"] = {"type": "string"}
            values = ({"enum": ["one"]}, {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]})
            made["oneOf"] = [{"properties": {"choice": value}} for value in values]


def _with_key(item: Part) -> Part:
    """Give the items of a list that is a map the field that tells them apart."""
    required = "required" in item
    key: Part = {"type": "string"} if required else {"type": "string", "default": "abc"}
    result = {**item, "properties": {_KEY: key, **item.get("properties", {})}}
    return {**result, "required": [_KEY]} if required else result


def _rule(made: Part) -> Part:
    kind = made.get("type")
    if kind == "object" and "properties" in made:
        name = next(iter(made["properties"]))
        return {"rule": f"has(self.{name}) || !has(self.{name})", "message": f"{name} is there or not"}
    rules = {
        "string": {"rule": "self != 'forbidden'", "message": "must not be forbidden"},
        "integer": {"rule": "self != 8"},
        "array": {"rule": "self.size() != 2", "message": "must not be two"},
        "object": {"rule": "self.size() != 2", "message": "must not be two"},
    }
    return rules.get(str(kind), {"rule": "true"})


def shapes(edges: Sequence[Edge]) -> list[Part]:
    """Return CRDs whose schemas have these edges."""
    inner: dict[Features, dict[str, list[Features]]] = defaultdict(lambda: defaultdict(list))
    for outer, how, features in sorted(
        edges, key=lambda edge: [sorted(each) for each in (edge[0], [edge[1]], edge[2])]
    ):
        inner[outer][how].append(features)
    nodes: list[Part] = []
    for outer, ways in inner.items():
        longest = max(len(ways[ITEM]), len(ways[VALUE]), 1)
        for turn in range(longest):
            parts = [(PROPERTY, node(each)) for each in (ways[PROPERTY] if turn == 0 else ways[PROPERTY][:1])]
            parts += [(how, node(ways[how][turn % len(ways[how])])) for how in (ITEM, VALUE) if ways[how]]
            nodes.append(node(outer, parts))
    groups = [nodes[start : start + AT_MOST] for start in range(0, len(nodes), AT_MOST)]
    return [_crd(number, group) for number, group in enumerate(groups, 1)]


def _crd(number: int, nodes: Sequence[Part]) -> Part:
    spec = {"type": "object", "properties": {f"node{at}": each for at, each in enumerate(nodes, 1)}}
    status = {"type": "object", "properties": {"ready": {"type": "boolean"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    crd = widget_crd(GROUP, schema=schema, scale=False)
    names = {"plural": f"shape{number}s", "singular": f"shape{number}", "kind": f"Shape{number}"}
    crd["metadata"]["name"] = f"{names['plural']}.{GROUP}"
    crd["spec"]["names"] = names
    return crd


_FORMATS: Final = (
    "bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5",
    "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration",
    "date-time", "datetime", "k8s-short-name", "k8s-long-name", "unknown",
)  # fmt: skip
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]
_EXTRAS: Final[Mapping[str, Part]] = {
    "maybe": {"type": "string", "nullable": True},
    "maybeWithDefault": {"type": "string", "nullable": True, "default": "x"},
    "maybeObject": {"type": "object", "nullable": True, "properties": {"a": TEXT}},
    "number": {"type": "number", "minimum": 0.5, "maximum": 2.5},
    "float": {"type": "number", "format": "float"},
    "double": {"type": "number", "format": "double"},
    "between": {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": True},
    "even": {"type": "integer", "multipleOf": 2},
    "quarter": {"type": "number", "multipleOf": 0.25},
    "small": {"type": "integer", "format": "int32"},
    "large": {"type": "integer", "format": "int64"},
    "plain": {"type": "integer"},
    "chosen": {"type": "integer", "enum": [1, 2, 3]},
    "free": {"type": "object", PRESERVE: True},
    "halfFree": {"type": "object", PRESERVE: True, "properties": {"a": {"type": "integer"}}},
    "anything": {PRESERVE: True},
    "template": {"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True},
    "port": {"x-kubernetes-int-or-string": True},
    "percent": {"x-kubernetes-int-or-string": True, "anyOf": _EITHER, "pattern": "^[0-9]+%$"},
    "oneOf": {**SEVERAL, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "anyOf": {**SEVERAL, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "allOf": {**SEVERAL, "allOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "not": {**SEVERAL, "not": {"required": ["a"]}},
    "lists": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    "atomic": {"type": "array", "items": SEVERAL, "x-kubernetes-list-type": "atomic"},
    "set": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
    "twoKeys": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["port"],
            "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
    },
    "table": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    "whole": {"type": "object", "properties": {"a": TEXT}, "x-kubernetes-map-type": "atomic"},
    "empty": {"type": "object"},
    "nested": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}},
}  # fmt: skip


def extras() -> Iterator[Part]:
    """Yield CRDs and objects of kinds of which public ones are few."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": dict(_EXTRAS)}}}
    yield _named(widget_crd(_EXTRA_GROUP, schema=schema, scale=False), "extra")
    formats = {f"f{number}": {"type": "string", "format": name} for number, name in enumerate(_FORMATS)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": formats}}}
    yield _named(widget_crd(_EXTRA_GROUP, schema=schema, status=False, scale=False), "format")
    free = {"type": "object", PRESERVE: True}
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}]
    columns.append({"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
    columns.append(
        {"name": "Word", "type": "string", "jsonPath": ".spec.word", "description": "a word", "format": "byte"}
    )
    yield _named(widget_crd(_EXTRA_GROUP, versions=("v1", "v1beta1", "v1alpha1"), columns=columns), "column")
    yield _named(widget_crd(_EXTRA_GROUP, schema=free, scope="Cluster"), "free")
    fields = [{"jsonPath": ".spec.colour"}, {"jsonPath": ".spec.size"}]
    yield _named(widget_crd(_EXTRA_GROUP, status=False, scale=False, selectableFields=fields), "field")
    deprecated: Part = {"deprecated": True, "deprecationWarning": "use something else"}
    yield _named(widget_crd(_EXTRA_GROUP, status=True, scale=False, **deprecated), "old")
    unserved = widget_crd(_EXTRA_GROUP, versions=("v2", "v1"))
    unserved["spec"]["versions"][1]["served"] = False
    yield _named(unserved, "unserved")
    for number, wrong in enumerate(NODES, 1):
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": wrong}}}}
        yield _named(widget_crd(_EXTRA_GROUP, schema=schema, status=False, scale=False), f"wrong{number}")
    for number, version in enumerate(VERSIONS, 1):
        yield _named(widget_crd(_EXTRA_GROUP, **version), f"odd{number}")
    yield from _ruled()
    head = {"apiVersion": f"{_EXTRA_GROUP}/v1", "kind": "Column"}
    for metadata in _METADATA:
        yield {**head, "metadata": metadata, "spec": {"size": 2, "colour": "red"}}


def _ruled() -> Iterator[Part]:
    """Yield a CRD with rules, and objects that keep and break them."""
    fields = {f"f{number}": VALUES[name] for number, name in enumerate(_RULED)}
    status = struct("!has(self.size) || self.size > 0", size={"type": "integer"})
    spec = struct("!has(self.f0) || !has(self.f1)", **{name: field for name, (field, _) in fields.items()})
    schema = struct("self.metadata.name != 'forbidden'", spec=spec, status=status)
    yield _named(widget_crd(_EXTRA_GROUP, schema=schema, scale=False), "ruled")
    head = {"apiVersion": f"{_EXTRA_GROUP}/v1", "kind": "Ruled"}
    for name, (_, tried) in fields.items():
        for number, steps in enumerate(tried[:2]):
            yield {**head, "metadata": {"name": f"{name}-{number}"}, "spec": {name: steps[-1]}}
    yield {**head, "metadata": {"name": "forbidden"}, "spec": {}}


_RULED: Final = (
    "text", "message", "reason FieldValueForbidden", "path", "own message", "several", "either", "has", "old",
    "old, optional", "old, of its items", "old, of a map", "item with a key", "odd names", "time", "open", "embedded",
)  # fmt: skip

_METADATA: Final[Sequence[Any]] = (
    {"name": "plain", "labels": {"a": "b", "example.com/c": ""}, "annotations": {"note": "x" * 300}},
    {"name": "finalized", "finalizers": ["example.com/stay", "short"]},
    {"generateName": "made-"},
    {},
    {"name": "UPPER"},
    {"name": "dotted.name.example"},
    {"name": "labelled", "labels": {"a b": "c"}},
    {"name": "labelled", "labels": {"a": "not a value!"}},
    {"name": "labelled", "labels": {"a": 1}},
    {"name": "annotated", "annotations": {"-": "x"}},
    {"name": "annotated", "annotations": ["x"]},
    {"name": "owned", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
    {"name": "owned", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
    {"name": "unknown", "colour": "red"},
    {"name": "versioned", "resourceVersion": "1"},
    {"name": "known", "uid": "0b2c3d4e-1f2a-4b3c-8d4e-5f6a7b8c9d0e", "generation": 7, "selfLink": "/x"},
    {"name": "past", "creationTimestamp": "2020-01-02T03:04:05Z", "deletionTimestamp": "2020-01-02T03:04:05Z"},
    {"name": "timed", "creationTimestamp": "yesterday"},
)


def _named(crd: Part, word: str) -> Part:
    crd["spec"]["names"] = {
        "plural": f"{word}s",
        "singular": word,
        "kind": word.capitalize(),
        "categories": ["corpus"],
    }
    crd["metadata"]["name"] = f"{word}s.{crd['spec']['group']}"
    return crd


def samples(crds: Sequence[Part]) -> Iterator[Part]:
    """Yield an object of each kind that has one item and property of each."""
    for crd in crds:
        kind = kinds_of(crd)[0]
        yield object_of(kind, "sample", fullest(kind.schema, depth=8))
        yield object_of(kind, "least", smallest(kind.schema))


def files() -> dict[str, str]:
    """Return what the files are to hold, by their names."""
    crds = shapes(read(FILE))
    return {
        "shapes.jsonl": _lines("build.py, shapes", [*crds, *samples(crds)]),
        "extras.jsonl": _lines("build.py, extras", list(extras())),
    }


def _lines(origin: str, objects: Sequence[Part]) -> str:
    return "".join(f"{json.dumps({'from': origin, 'object': each}, separators=(',', ':'))}\n" for each in objects)


def main() -> None:
    for name, text in files().items():
        (FOLDER / name).write_text(text)
        print(f"{name}: {text.count(chr(10))} lines, {len(text):,} bytes")


if __name__ == "__main__":
    main()
