"""The schema of a class says what the class says: what it writes is accepted, what it cannot read is refused."""

from __future__ import annotations

import datetime as dt
import enum
import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, TypedDict, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from deltaloop.crds import Int32, IntOrString, Quantity, atomic, class_rules, field_rules, list_map_keys, list_set
from deltaloop.crds.class_schemas import class_schema
from deltaloop.crds.rules.compiled import rules_of
from deltaloop.crds.rules.definitions import RuleChecks
from deltaloop.crds.rules.evaluation import evaluate
from deltaloop.errors import InvalidKindError
from deltaloop.schemas.decoding import decode_by_schema, schema_errors
from deltaloop.schemas.quantity import MalformedQuantityError, canonical_quantity
from deltaloop.schemas.schema_compiler import schema_from_json
from deltaloop.schemas.schema_rules import schema_errors as definition_errors
from tests.having import having


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Inner(Struct, rename="camel"):
    """A part.

    More of it, ``quoted``.

    Attributes:
        first_name: What it is called,
            in two lines.
        other: Something.
    """

    first_name: str
    other: int = 3


class Typed(TypedDict, total=False):
    a: int


@dataclass
class Plain:
    x: Annotated[int, Meta(ge=1, lt=9)] = 3
    y: list[str] = field(default_factory=list[str])


CASES: list[tuple[Any, dict[str, Any]]] = [
    (bool, {"type": "boolean"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (Annotated[int, Meta(ge=1, le=5, multiple_of=2)], {"type": "integer", "minimum": 1, "maximum": 5, "multipleOf": 2}),
    (Annotated[float, Meta(gt=1)], {"type": "number", "minimum": 1, "exclusiveMinimum": True}),
    (Annotated[int, Meta(lt=1)], {"type": "integer", "maximum": 1, "exclusiveMaximum": True}),
    (
        Annotated[str, Meta(min_length=1, max_length=3, pattern="^a")],
        {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a"},
    ),
    (Annotated[str, Meta(description="what", title="T")], {"type": "string", "description": "what"}),
    (Annotated[str, Meta(extra_json_schema={"format": "uri"})], {"type": "string", "format": "uri"}),
    (bytes, {"type": "string", "format": "byte"}),
    (dt.datetime, {"type": "string", "format": "date-time"}),
    (dt.date, {"type": "string", "format": "date"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (Literal["b", "a"], {"type": "string", "enum": ["a", "b"]}),
    (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
    (Literal["a"] | None, {"type": "string", "pattern": "^(?:a)$", "nullable": True}),
    (Size, {"type": "string", "enum": ["small", "large"]}),
    (Size | None, {"type": "string", "pattern": "^(?:small|large)$", "nullable": True}),
    (
        Literal[1, 2] | None,
        {
            "type": "integer",
            "anyOf": [{"minimum": 1, "maximum": 1}, {"minimum": 2, "maximum": 2}],
            "nullable": True,
        },
    ),
    (Literal["a b|", "."] | None, {"type": "string", "pattern": r"^(?:\.|a\ b\|)$", "nullable": True}),
    (str | None, {"type": "string", "nullable": True}),
    (str | UnsetType, {"type": "string"}),
    (int | str, {"x-kubernetes-int-or-string": True}),
    (int | float, {"type": "number"}),
    (IntOrString, {"x-kubernetes-int-or-string": True}),
    (
        Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern="^[0-9]+%$", max_length=4)],
        {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$", "maxLength": 4, "minimum": 1},
    ),
    (Int32, {"type": "integer", "format": "int32"}),
    (Annotated[Int32, Meta(ge=1)], {"type": "integer", "format": "int32", "minimum": 1}),
    (
        Optional[Quantity],  # noqa: UP045 - pyright knows no union with an alias at run time
        {
            "x-kubernetes-int-or-string": True,
            "nullable": True,
            "pattern": ...,
        },
    ),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (set[str], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
    (
        Annotated[list[str], list_set(), Meta(max_length=4)],
        {"type": "array", "items": {"type": "string"}, "maxItems": 4, "x-kubernetes-list-type": "set"},
    ),
    (
        Annotated[list[str], atomic()],
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
    ),
    (
        Annotated[dict[str, int], atomic(), Meta(max_length=3)],
        {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "maxProperties": 3,
            "x-kubernetes-map-type": "atomic",
        },
    ),
    (dict[str, Any], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    (Any, {"x-kubernetes-preserve-unknown-fields": True}),
    (Typed, {"type": "object", "properties": {"a": {"type": "integer"}}}),
    (
        Annotated[int, field_rules("self > 0")],
        {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]},
    ),
]


def schema_of(kind: Any, **options: Any) -> dict[str, Any]:
    return class_schema(msgspec.defstruct("Whole", [("x", kind)], **options)).schema


@pytest.mark.parametrize(("kind", "wanted"), CASES, ids=str)
def test_annotation_to_schema(kind: Any, wanted: dict[str, Any]) -> None:
    found = schema_of(kind)["properties"]["x"]
    assert {**found, **{name: ... for name, value in wanted.items() if value is ...}} == wanted
    assert not definition_errors(schema_of(kind), "", with_status=False, expressions=RuleChecks())


def test_nested_classes_and_docstring_descriptions() -> None:
    class Whole(Struct):
        keyed: Annotated[list[Inner], list_map_keys("firstName")]
        plain: Plain
        both: Annotated[Inner, Meta(description="of the field")]
        none: Inner | None = None
        absent: Inner | UnsetType = UNSET

    Whole.__annotations__ = {name: eval(hint, globals(), {}) for name, hint in Whole.__annotations__.items()}
    found = class_schema(Whole).schema
    inner = {
        "description": "A part.\nMore of it, quoted.",
        "type": "object",
        "properties": {
            "firstName": {"type": "string", "description": "What it is called, in two lines."},
            "other": {"type": "integer", "description": "Something.", "default": 3},
        },
        "required": ["firstName"],
    }
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["firstName"]}
    limited = {"type": "integer", "minimum": 1, "maximum": 9, "exclusiveMaximum": True, "default": 3}
    texts: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "default": []}
    assert found == {
        "type": "object",
        "properties": {
            "keyed": {"type": "array", "items": inner, **keys},
            "plain": {"type": "object", "properties": {"x": limited, "y": texts}},
            "both": {**inner, "description": "of the field"},
            "none": {**inner, "nullable": True},
            "absent": inner,
        },
        "required": ["keyed", "plain", "both"],
    }


def test_default_omits_values_equal_to_nested_defaults() -> None:
    class Whole(Struct):
        part: Inner = msgspec.field(default_factory=lambda: Inner("a"))
        some: Inner = msgspec.field(default_factory=lambda: Inner("a", other=4))
        size: Size = Size.LARGE
        at: dt.date = dt.date(2026, 1, 2)
        names: set[str] = msgspec.field(default_factory=lambda: {"b", "a"})

    Whole.__annotations__ = {name: eval(hint, globals(), {}) for name, hint in Whole.__annotations__.items()}
    found = {name: each.get("default") for name, each in class_schema(Whole).schema["properties"].items()}
    wanted = {"firstName": "a"}
    assert found == {
        "part": wanted,
        "some": {"firstName": "a", "other": 4},
        "size": "large",
        "at": "2026-01-02",
        "names": ["a", "b"],
    }


@class_rules("self.least <= self.most")
class Range(Struct):
    least: int = 1
    most: int = 9
    note: str | None = None
    more: str | UnsetType = UNSET


class Ranges(Struct):
    first: Range = msgspec.field(default_factory=Range)
    others: list[Range] = msgspec.field(default_factory=lambda: [Range(most=3)])


def test_default_is_complete_where_rules_apply() -> None:
    schema = class_schema(Ranges).schema
    found = {name: each.get("default") for name, each in schema["properties"].items()}
    assert found == {"first": {"least": 1, "most": 9}, "others": [{"least": 1, "most": 3}]}
    assert definition_errors(schema, "", with_status=False, expressions=RuleChecks()) == []


class Recursive(Struct):
    inner: Recursive | None = None


class Deep(Struct):
    recursive: list[Recursive] = []


class Wrong(Struct):
    number: complex | str


class Unknown(Struct):
    number: Missing  # type: ignore[name-defined]  # noqa: F821 # pyright: ignore[reportUndefinedVariable]


class Tagged(Struct, tag=True):
    number: int


class OtherTagged(Struct, tag=True):
    number: int


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (Deep, "Recursive.inner"),
        (list[Wrong], "Wrong.number"),
        (list[Unknown], "Whole"),
        (complex, "Whole.x"),
        (dt.timedelta, "Whole.x"),
        (tuple[int, str], "Whole.x"),
        (Tagged | OtherTagged, "Whole.x"),
        (str | list[str], "Whole.x"),
        (dict[int, str], "Whole.x"),
        (Literal[1, "a"], "Whole.x"),
        (Tagged, "Tagged"),
    ],
    ids=str,
)
def test_type_without_a_schema_is_rejected_with_class_and_field(kind: Any, place: str) -> None:
    with pytest.raises(InvalidKindError, check=having(argument=place)):
        schema_of(kind)


def test_only_a_class_with_fields_is_an_object() -> None:
    with pytest.raises(InvalidKindError, check=having(argument="int")):
        class_schema(int)


@pytest.mark.parametrize(
    "text",
    ["1", "+1", "-1.5", ".5", "1.", "0", "10Gi", "5Ki", "100m", "1n", "1k", "1K", "1e3", "1E-3", "1e", "1.5E", "", "a",
     "1 Gi", "1GB", "--1", "1.2.3", "1Ki1", "1ki", "1g"],
)  # fmt: skip
def test_quantity_pattern_matches_server(text: str) -> None:
    """But for ``.`` and a suffix alone, which Go reads as nothing, and no pattern of a published definition takes."""
    pattern = class_schema(msgspec.defstruct("Amounts", [("amount", Quantity)])).schema["properties"]["amount"][
        "pattern"
    ]
    try:
        canonical_quantity(text)
    except MalformedQuantityError:
        assert re.search(pattern, text) is None
    else:
        assert re.search(pattern, text) is not None


TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=4)
NUMBERS = st.integers(-(2**53), 2**53)


@st.composite
def field_types(draw: st.DrawFn, depth: int = 2) -> Any:
    """A type that a field may have."""
    flat: list[Any] = [bool, int, float, str, int | str, Size, Literal["a", "b"], Literal[1, 2]]
    low = draw(st.integers(-3, 3))
    flat += [Annotated[int, Meta(ge=low, le=low + 2)], Annotated[str, Meta(min_length=1, max_length=2)]]
    flat += [Annotated[float, Meta(gt=low, lt=low + 2)], Annotated[str, Meta(pattern="^[ab]")]]
    if not depth or draw(st.booleans()):
        chosen = draw(st.sampled_from(flat))
        return chosen | None if draw(st.booleans()) else chosen
    inner: Any = draw(field_types(depth - 1))
    if draw(st.booleans()):
        return draw(st.sampled_from([list[inner], dict[str, inner], Annotated[list[inner], Meta(max_length=2)]]))
    fields: list[Any] = [("first", inner), ("second", draw(field_types(depth - 1)) | UnsetType, UNSET)]
    return msgspec.defstruct(f"Part{depth}", fields)


# Kubernetes accepts 1.9999999999999996 as an integer, but a class does not; 32 bits keep floats apart from integers.
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(-4, 4, width=32)
    | TEXTS
    | st.sampled_from(["a", "b", "small"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["first", "second", "z"]), inner),
    max_leaves=4,
)


def verdict(cls: type, fields: dict[str, Any]) -> list[str]:
    """What the embedded server says of an object: it is pruned, gets its defaults, and is held to the schema."""
    schema = schema_from_json(msgspec.json.encode(class_schema(cls).schema))
    decode_by_schema(schema, fields)
    errors = schema_errors(schema, fields)
    rules = rules_of(schema.source)
    if rules and not errors:
        errors += evaluate(rules, schema.tree, fields)
    return [str(error) for error in errors]


@st.composite
def values_of(draw: st.DrawFn, info: Any) -> Any:
    """A value that a class may have, as it is in JSON."""
    inspect = msgspec.inspect
    while isinstance(info, inspect.Metadata):
        info = info.type
    if isinstance(info, inspect.UnionType):
        return draw(values_of(draw(st.sampled_from(info.types))))
    if isinstance(info, inspect.StructType):
        there = [each for each in info.fields if each.required or draw(st.booleans())]
        return {each.encode_name: draw(values_of(each.type)) for each in there}
    if isinstance(info, inspect.ListType):
        return draw(st.lists(values_of(info.item_type), max_size=2))
    if isinstance(info, inspect.DictType):
        return draw(st.dictionaries(TEXTS, values_of(info.value_type), max_size=2))
    if isinstance(info, inspect.EnumType):
        return draw(st.sampled_from([each.value for each in info.cls]))
    if isinstance(info, inspect.LiteralType):
        return draw(st.sampled_from(info.values))
    if isinstance(info, inspect.StrType):
        return draw(st.sampled_from(["a", "ab", "b"]) if info.pattern or info.min_length else TEXTS)
    if isinstance(info, inspect.IntType):
        return draw(NUMBERS if info.ge is None else st.integers(info.ge, info.le))
    if isinstance(info, inspect.FloatType):
        if info.gt is not None:
            return draw(st.floats(info.gt, info.lt, exclude_min=True, exclude_max=True))
        return draw(st.floats(allow_nan=False, allow_infinity=False, width=32))
    return None if isinstance(info, inspect.NoneType) else draw(st.booleans())


@given(st.data())
def test_values_of_class_pass_its_schema(data: st.DataObject) -> None:
    cls = msgspec.defstruct("Whole", [("x", data.draw(field_types()))])
    assert not definition_errors(class_schema(cls).schema, "", with_status=False, expressions=RuleChecks())
    given = data.draw(values_of(msgspec.inspect.type_info(cls)))
    value = msgspec.convert(given, cls)
    assert verdict(cls, json.loads(msgspec.json.encode(value))) == []


@given(st.data())
def test_schema_rejects_values_that_class_cannot_decode(data: st.DataObject) -> None:
    cls = msgspec.defstruct("Whole", [("x", data.draw(field_types()))])
    given = data.draw(JSON | values_of(msgspec.inspect.type_info(cls)).flatmap(lambda value: mutations(value["x"])))
    fields = json.loads(msgspec.json.encode({"x": given}))
    if not verdict(cls, fields):
        msgspec.json.decode(msgspec.json.encode(as_stored(fields)), type=cls)


def as_stored(value: Any) -> Any:
    """What the server keeps of a value: numbers without a fraction are written without one."""
    if isinstance(value, dict):
        return {name: as_stored(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [as_stored(each) for each in cast("list[Any]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def mutations(value: Any) -> st.SearchStrategy[Any]:
    """A value with one part put into another's place."""
    if isinstance(value, dict) and value:
        known = cast("dict[str, Any]", value)

        def put(name: str) -> st.SearchStrategy[dict[str, Any]]:
            return mutations(known[name]).map(lambda new: {**known, name: new})

        def without(name: str) -> dict[str, Any]:
            return {each: known[each] for each in known if each != name}

        names = st.sampled_from(sorted(known))
        return names.flatmap(put) | names.map(without) | JSON
    if isinstance(value, list) and value:
        listed = cast("list[Any]", value)
        return mutations(listed[0]).map(lambda new: [new, *listed[1:]]) | JSON
    return JSON
