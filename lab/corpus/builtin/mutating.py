"""Changes of an object at one place, which the type of that place suggests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from deltaloop.api.json_values import copied, is_mapping, mapping, text
from lab.corpus.builtin.types import INT_OR_STRING, QUANTITY
from lab.corpus.making import smallest
from lab.corpus.mutating import REMOVED, Mutation, part_of
from lab.corpus.schemas import Schema, places_of, plain_path

_OTHER_TYPES: Final[Mapping[str, tuple[Any, ...]]] = {
    "string": (7, True, ["a"], {}),
    "integer": ("text", 1.5, True, "7", 2**64),
    "number": ("text", []),
    "boolean": ("true", 1),
    "array": ({}, "text"),
    "object": ("text", [], 7),
}
_WORDS: Final = (
    "", "A_b", "-a", "a b", "a/b", "a/b/c", "/a", "../a", "a..b", "a.b", "1", "-1", "a:b", "*", "http://a", "None",
    "a" * 64, "a" * 254,
)  # fmt: skip
_NUMBERS: Final = (-1, 0, 1, 101, 70_000, 2**31 - 1, 2**31, 2**40)
_QUANTITIES: Final = ("-1", "0", "1", "1.5", "1m", "1e30", "x", "", 1)
_PORTS: Final = (-1, 0, 70_000, "", "A_b", "150%", "-5%", "10%", "http", "a-b-c-d-e-f-g-h-i")
_KEYS: Final = ("", "a b", "A_b", "-a", "a/b", "a/b/c", "kubernetes.io/a", "cpu", "a" * 64, "requests.a")
_MANY: Final = 33


def builtin_mutations(schema: Schema, whole: Any, *, twice: bool = False) -> Iterator[Mutation]:
    """Yield changes of an object.

    Args:
        schema: Schema of the object.
        whole: The object.
        twice: Whether a property that is added holds properties that no rule requires.
    """
    for place in places_of(schema, whole):
        if not place.path or place.path[0] in ("apiVersion", "kind", "metadata"):
            continue
        value, where = part_of(whole, place.path), plain_path(place.path)
        for name, changed in _changes(place.schema, value, twice=twice):
            yield Mutation(name, place.path, changed, frozenset({where, repr(changed)[:40]}), where)


def _changes(schema: Schema, value: Any, *, twice: bool) -> Iterator[tuple[str, Any]]:
    yield "left out", REMOVED
    yield "null", None
    kind = text(schema.get("title"))
    if kind == QUANTITY:
        yield from (("quantity", other) for other in _QUANTITIES)
    elif kind == INT_OR_STRING:
        yield from (("integer or text", other) for other in _PORTS)
    else:
        yield from (("another type", other) for other in _OTHER_TYPES.get(text(schema.get("type")), ()))
    if isinstance(value, bool):
        yield "the opposite", not value
    elif isinstance(value, int):
        yield from (("number", number) for number in (*_NUMBERS, value + 1))
    elif isinstance(value, str) and kind not in (QUANTITY, INT_OR_STRING):
        yield from (("enum", other) for other in schema.get("enum") or () if other != value)
        yield from (("text", word) for word in _WORDS)
        yield from (("text", word) for word in (f"{value}-a", f"{value} ", value.upper()))
    elif isinstance(value, list):
        yield from _of_list(schema, cast("list[Any]", value))
    elif is_mapping(value):
        yield from _of_object(schema, value, twice=twice)


def _of_list(schema: Schema, value: list[Any]) -> Iterator[tuple[str, Any]]:
    yield "no items", []
    inner = mapping(schema.get("items"))
    if value:
        yield "an item twice", [*value, copied(value[0])]
        yield "the other order", value[::-1]
        yield "without the last", value[:-1]
        yield "many items", [copied(value[0]) for _ in range(_MANY)]
    yield "an empty item", [*value, {} if inner.get("properties") else ""]
    yield "null as an item", [*value, None]
    yield "a small item", [*value, _made(inner, twice=False)]


def _of_object(schema: Schema, value: dict[str, Any], *, twice: bool) -> Iterator[tuple[str, Any]]:
    yield "no fields", {}
    yield "an unknown field", {**value, "unknownField": "x"}
    inner = schema.get("additionalProperties")
    if is_mapping(inner):
        first = next(iter(value.values()), None)
        for key in _KEYS:
            yield "a key", {**value, key: _made(inner, twice=False) if first is None else first}
    for name, below in mapping(schema.get("properties")).items():
        if name in value or name in ("status", "metadata"):
            continue
        for added in _added(mapping(below), twice=twice):
            yield "one field more", {**value, name: added}


def _added(schema: Schema, *, twice: bool) -> Iterator[Any]:
    kind = schema.get("type")
    if schema.get("title") == QUANTITY:
        yield from ("1", "-1")
    elif schema.get("title") == INT_OR_STRING:
        yield from (1, "a")
    elif schema.get("enum"):
        yield from schema["enum"]
    elif kind == "string":
        yield from ("a", "A/b")
    elif kind == "integer":
        yield from (-1, 1)
    elif kind == "boolean":
        yield from (True, False)
    elif kind == "array":
        yield from ([], [_made(mapping(schema.get("items")), twice=twice)])
    elif "additionalProperties" in schema:
        yield from ({}, {"a": _made(mapping(schema["additionalProperties"]), twice=twice)})
    elif kind == "object":
        yield {}
        yield _made(schema, twice=twice)


def _made(schema: Schema, *, twice: bool) -> Any:
    """Make a value; with ``twice``, an object gets its first properties although no rule requires them."""
    if schema.get("title") == QUANTITY:
        return "1"
    if not twice or not schema.get("properties"):
        return smallest(schema)
    few = [*mapping(schema["properties"]).items()][:3]
    return {name: _made(mapping(inner), twice=False) for name, inner in few}
