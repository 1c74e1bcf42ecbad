"""How values of a schema merge, which is a part of the same tree as everything else about them."""

from __future__ import annotations

import msgspec
import pytest

from deltaloop.schemas.object_meta import METADATA
from deltaloop.schemas.schema_compiler import compile_schema, schema_from_json
from deltaloop.schemas.types import FREE, TypeNode

_OPEN = "x-kubernetes-preserve-unknown-fields"
_INNER = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "merging", "accepts"),
    [
        ({"type": "string"}, "scalar", "string"),
        ({"type": "string", "format": "date"}, "scalar", "scalar"),
        ({"type": "array"}, "scalar", "list"),
        ({"type": "array", "x-kubernetes-list-type": "set"}, "set", "list"),
        ({"type": "array", "x-kubernetes-list-type": "map"}, "keyed", "list"),
        ({"type": "object"}, "map", "map"),
        ({"type": "object", "x-kubernetes-map-type": "atomic"}, "scalar", "map"),
        ({"x-kubernetes-int-or-string": True}, "free", ""),
    ],
)
def test_merge_strategy(schema: object, merging: str, accepts: str) -> None:
    node = compile_schema(schema)
    assert (node.merging, node.accepts) == (merging, accepts)


@pytest.mark.parametrize(
    ("schema", "is_free"),
    [
        ({"type": "object"}, True),
        (_INNER, False),
        ({**_INNER, _OPEN: True}, True),
        ({"type": "object", "additionalProperties": True}, True),
        ({"type": "object", "additionalProperties": False}, False),
    ],
)
def test_value_without_schema_merges_freely(schema: object, is_free: bool) -> None:
    assert (compile_schema(schema).element is FREE) is is_free


def test_fields_below_preserved_object_merge_freely_and_are_pruned() -> None:
    inner = compile_schema({"type": "object", _OPEN: True, "properties": {"b": _INNER}}).fields["b"]
    assert inner.element is FREE
    assert not inner.open


def test_embedded_metadata_merges_like_object_metadata() -> None:
    described = {"type": "object", "properties": {"metadata": {"type": "object"}, "inner": {**_INNER, _EMBEDDED: True}}}
    tree: TypeNode = schema_from_json(msgspec.json.encode(described)).tree
    assert tree.merge_fields["metadata"] is METADATA
    assert tree.fields["inner"].merge_fields["metadata"] is METADATA
    assert tree.fields["metadata"] is not METADATA


_EMBEDDED = "x-kubernetes-embedded-resource"
