"""What is wrong with an object, made from its schema: one change at one place.

A mutation is found first (its name and place) and made later, so that of the many that a large schema has some can be
chosen: of each name about as many, by a seed.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deltaloop.api.json_values import copied, is_mapping, mapping
from lab.corpus.making import smallest
from lab.corpus.schemas import (
    BRANCHES,
    INT_OR_STRING,
    LIST_TYPE,
    PRESERVE,
    Path,
    Place,
    Schema,
    features_of,
    plain_path,
)

REMOVED: Final = object()
LONGEST: Final = 70_000
MOST_ITEMS: Final = 1500

OTHER_TYPES: Final[Mapping[str, Any]] = {
    "string": "text",
    "integer": 7,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "a list of an object": [{}],
    "an object with a field": {"unknownField": "x"},
    "an integer written as 1.0": 1.0,
    "an integer above 64 bits": 2**64,
    "a number as text": "7",
    "an empty text": "",
}
_TYPE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("string", "a number as text", "an empty text"),
    "integer": ("integer",),
    "number": ("integer", "number", "an integer written as 1.0", "an integer above 64 bits"),
    "boolean": ("boolean",),
    "array": ("array", "a list of an object"),
    "object": ("object", "an object with a field"),
}
WORDS: Final = (
    "", " ", "a", "A_b", "-a", "a-", "a b", "a\nb", "ä", "!", "1", "-1", "0", "1.5", "a/b/c", "//", "https://", "None",
    "a" * 300,
)  # fmt: skip
FORMATS: Final[Mapping[str, tuple[Any, ...]]] = {
    "int32": (2**31, -(2**31) - 1, 2**31 - 1, 2**40),
    "int64": (2**63, -(2**63) - 1, 2**63 - 1),
    "float": (1e39, 1e-46, 3.4e38),
    "double": (1e308,),
    "date-time": ("2024-01-02", "2024-01-02 03:04:05Z", "2024-13-02T03:04:05Z", "2024-01-02t03:04:05z", "now", ""),
    "date": ("2024-1-2", "2024-01-02T03:04:05Z", "2024-02-30"),
    "byte": ("!!", "aGk", "aGk=", "", "aGk=\n"),
    "duration": ("10", "1d", "1h30m", "-1s", "1.5h", "1 s", ""),
    "ipv4": ("10.0.0", "10.0.0.256", "::1", "010.0.0.1"),
    "ipv6": ("10.0.0.1", "::ffff:10.0.0.1", "2001:db8::g"),
    "cidr": ("10.0.0.0", "10.0.0.1/33", "10.0.0.1/8", "::/0"),
    "mac": ("00:00:5e:00:53", "00-00-5e-00-53-01", "0000.5e00.5301"),
    "uuid": ("0b2c3d4e1f2a4b3c8d4e5f6a7b8c9d0e", "0B2C3D4E-1F2A-4B3C-8D4E-5F6A7B8C9D0E", "x"),
    "uri": ("a b", "/a", "://a", "urn:a:b", ""),
    "hostname": ("a_b", "-a", "a.", "EXAMPLE.com", "a..b", ""),
    "email": ("a", "a@", "A <a@example.com>", "a@b"),
    "password": ("x", ""),
}  # fmt: skip
ANY_FORMAT: Final = ("x", "", "1", "a b")


@dataclass(frozen=True)
class Mutation:
    """One change at one place."""

    name: str
    at: Path
    value: Any
    features: frozenset[str]
    where: str

    def applied_to(self, whole: Any) -> Any:
        """Return the object with the change in it."""
        if not self.at:
            return self.value
        result = copied(whole)
        part = result
        for step in self.at[:-1]:
            part = part[step]
        if self.value is REMOVED:
            del part[self.at[-1]]
        else:
            part[self.at[-1]] = self.value
        return result


def mutations_of(places: Iterable[Place], whole: Any) -> Iterator[Mutation]:
    """Yield what can be made wrong, or other, at these places of an object."""
    for place in places:
        if place.path[:1] in (("metadata",), ("apiVersion",), ("kind",)) or not place.path:
            continue
        value = part_of(whole, place.path)
        features = features_of(place.schema)
        for name, changed in _changes(place.schema, value, required=place.required):
            yield Mutation(name, place.path, changed, features, plain_path(place.path))


def part_of(whole: Any, path: Path) -> Any:
    """Return the part of an object at a path."""
    for step in path:
        whole = whole[step]
    return whole


def chosen(mutations: Iterable[Mutation], number: int, seed: str) -> list[Mutation]:
    """Choose so many: of each name about as many, and of one name's those whose nodes differ most in what they use."""
    chance = random.Random(seed)
    by_name: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        by_name[mutation.name].append(mutation)
    lines: list[list[Mutation]] = []
    for name in sorted(by_name):
        found = by_name[name]
        chance.shuffle(found)
        first: dict[frozenset[str], int] = defaultdict(int)
        ranked: list[tuple[int, Mutation]] = []
        for mutation in found:
            ranked.append((first[mutation.features], mutation))
            first[mutation.features] += 1
        lines.append([mutation for _, mutation in sorted(ranked, key=lambda each: each[0])])
    result: list[Mutation] = []
    for turn in range(max(map(len, lines), default=0)):
        for line in lines:
            if turn < len(line) and len(result) < number:
                result.append(line[turn])
    return result


def _changes(schema: Schema, value: Any, *, required: bool) -> Iterator[tuple[str, Any]]:
    yield ("a required field is missing" if required else "a field is left out"), REMOVED
    yield "null", None
    yield from _of_types(schema)
    if schema.get("enum"):
        yield "not of the enum", "not-of-the-enum" if isinstance(schema["enum"][0], str) else 987654
    if "format" in schema:
        for probe in FORMATS.get(schema["format"], ANY_FORMAT):
            yield f"format {schema['format']}", probe
    for name, change in _BY_TYPE.items():
        if isinstance(value, _PYTHON_TYPES[name]) and not (name == "number" and isinstance(value, bool)):
            yield from change(schema, value)


def _of_types(schema: Schema) -> Iterator[tuple[str, Any]]:
    kind = schema.get("type")
    fitting = _TYPE_OF.get(str(kind), ())
    if schema.get(INT_OR_STRING):
        kind, fitting = "int or string", ("string", "integer", "a number as text", "an empty text")
    if kind is None:
        return
    for name, value in OTHER_TYPES.items():
        if name not in fitting:
            yield f"{name} for {kind}", value


def _of_text(schema: Schema, value: str) -> Iterator[tuple[str, Any]]:
    if _has(schema, "pattern"):
        for word in WORDS:
            yield "pattern", word
        yield "pattern", f"{value}\n"
        yield "pattern", f" {value}"
        yield "pattern", f"{value}!"
    if "minLength" in schema and schema["minLength"] > 0:
        yield "shorter than minLength", (value or "a")[:1] * (schema["minLength"] - 1)
    if "maxLength" in schema and schema["maxLength"] < LONGEST:
        letter = (value or "a")[:1]
        yield "longer than maxLength", letter * (schema["maxLength"] + 1)
        yield "as long as maxLength", letter * schema["maxLength"]
        yield "as long as maxLength in letters, longer in bytes", "ä" * schema["maxLength"]


def _of_number(schema: Schema, value: float) -> Iterator[tuple[str, Any]]:
    if "minimum" in schema:
        yield "below the minimum", schema["minimum"] - 1
        yield "the minimum", schema["minimum"]
    if "maximum" in schema:
        yield "above the maximum", schema["maximum"] + 1
        yield "the maximum", schema["maximum"]
    if schema.get("multipleOf"):
        yield "no multiple", value + schema["multipleOf"] / 2


def _of_list(schema: Schema, value: list[Any]) -> Iterator[tuple[str, Any]]:
    items = mapping(schema.get("items"))
    if schema.get("minItems"):
        yield "fewer than minItems", value[: schema["minItems"] - 1]
    if "maxItems" in schema and schema["maxItems"] < MOST_ITEMS:
        first = value[0] if value else None
        many = [smallest(items, at) if at or first is None else first for at in range(schema["maxItems"] + 1)]
        yield "more than maxItems", many
        yield "as many as maxItems", many[:-1]
    if value:
        kind = schema.get(LIST_TYPE, "no list type")
        yield f"an item twice: {kind}", [*value, value[0]]
        if is_mapping(value[0]):
            yield f"an item without fields: {kind}", [*value, {}]
        yield "null as an item", [*value, None]
    yield "no items", []


def _of_object(schema: Schema, value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    what = "an unknown field"
    if schema.get(PRESERVE):
        what = "an unknown field that is kept"
    elif is_mapping(schema.get("additionalProperties")):
        what = "another key"
    yield what, {**value, "unknownField": "x"}
    yield f"{what} that holds null", {**value, "unknownField": None}
    yield f"{what} that holds an object", {**value, "unknown.field/x": {"a": [1]}}
    for name in schema.get("required") or ():
        if name in value:
            yield "a required field is null", {**value, name: None}
    if schema.get("minProperties"):
        yield "fewer than minProperties", {}
    if "maxProperties" in schema and schema["maxProperties"] < MOST_ITEMS:
        inner: Any = schema.get("additionalProperties")
        more = {f"k{at}": smallest(inner, at) if is_mapping(inner) else at for at in range(schema["maxProperties"] + 1)}
        yield "more than maxProperties", more
    for branches in ("oneOf", "anyOf"):
        for branch in schema.get(branches) or ():
            for name in branch.get("required") or ():
                without = {key: part for key, part in value.items() if key != name}
                yield f"{branches} without one", without
                inner = mapping(schema.get("properties")).get(name)
                if inner is not None:
                    yield f"{branches} with one more", {**value, name: smallest(inner)}


def _has(schema: Schema, name: str) -> bool:
    return name in schema or any(name in branch for branches in BRANCHES for branch in schema.get(branches) or ())


_BY_TYPE: Final[Mapping[str, Callable[[Schema, Any], Iterator[tuple[str, Any]]]]] = {
    "string": _of_text,
    "number": _of_number,
    "array": _of_list,
    "object": _of_object,
}
_PYTHON_TYPES: Final[Mapping[str, Any]] = {"string": str, "number": (int, float), "array": list, "object": dict}
