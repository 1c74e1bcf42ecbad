"""What a program hands in comes out as JSON as it was meant, or is refused by its path: never silently as another."""

from __future__ import annotations

import enum
import json
import math
import uuid
from collections import OrderedDict, UserDict
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.json_writing import write_json
from deltaloop.api.resource import Resource


class Number(float):
    pass


class Word(str):
    __slots__ = ()


class Level(enum.IntEnum):
    HIGH = 3


class Way(enum.StrEnum):
    UP = "up"


class NotANumber(enum.Enum):
    IT = math.nan


class Typed(msgspec.Struct):
    share: float = 0.5
    token: bytes = b"ab"
    ports: dict[int, str] = msgspec.field(default_factory=dict[int, str])
    words: set[str] = msgspec.field(default_factory=set[str])


@dataclass
class Plain:
    share: float


def looped() -> dict[str, Any]:
    fields: dict[str, Any] = {}
    fields["self"] = [fields]
    return fields


OBJ = Resource.from_json(b'{"metadata":{"name":"a"},"spec":{"list":[{"x":1}]}}')

ORDERED: OrderedDict[str, int] = OrderedDict(b=1)
SURROGATE = "x\ud800"


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"data": {"k": math.nan}}, "data.k", "not finite (nan)"),
        ({"a": [{"b": (1, -math.inf)}]}, "a[0].b[1]", "not finite (-inf)"),
        ({"a": {"example.com/x": math.inf}}, "a['example.com/x']", "not finite (inf)"),
        ({"a": Number("nan")}, "a", "not finite"),
        ({"a": NotANumber.IT}, "a", "not finite"),
        ({"a": [Typed(share=math.nan)]}, "a[0].share", "not finite"),
        ({"a": Plain(math.inf)}, "a.share", "not finite"),
        ({"a": MappingProxyType({"b": math.nan})}, "a.b", "not finite"),
        ({"a": UserDict({"b": math.nan})}, "a.b", "not finite"),
        ([{"op": "add", "value": math.nan}], "[0].value", "not finite"),
        ({"metadata": {"finalizers": {"b", "a"}}}, "metadata.finalizers", "has no order"),
        ({"a": frozenset("a")}, "a", "has no order"),
        ({"stringData": {"k": b"x"}}, "stringData.k", "bytes are not JSON"),
        ({"a": [bytearray(b"x")]}, "a[0]", "bytearray are not JSON"),
        ({"a": memoryview(b"x")}, "a", "memoryview are not JSON"),
        ({"data": {8080: "a", "8080": "b"}}, "data", "a key of type int"),
        ({"a": {1.5: 0}}, "a", "a key of type float"),
        ({"a": {None: 0}}, "a", "a key of type NoneType"),
        ({"a": {True: 0}}, "a", "a key of type bool"),
        ({"a": {b"k": 0}}, "a", "a key of type bytes"),
        ({"a": {Level.HIGH: 0}}, "a", "a key of type Level"),
        ({"a": SURROGATE}, "a", "a lone surrogate"),
        ({"a": {SURROGATE: 1}}, "a", "a lone surrogate"),
        ({"a": object()}, "a", "type object"),
        ({"a": [1j]}, "a[0]", "type complex"),
        ({"a": msgspec.UNSET}, "a", "type UnsetType"),
        ({"a": (x for x in "a")}, "a", "type generator"),
        ({"a": int}, "a", "type type"),
        (looped(), "", "contains itself"),
        (math.nan, "", "not finite"),
    ],
)
def test_value_without_json_form_is_rejected_with_path(value: object, path: str, reason: str) -> None:
    with pytest.raises(MalformedObjectError) as caught:
        write_json(value, "the patch")
    assert caught.value.path == path
    assert str(caught.value).startswith(f"the patch cannot be written as JSON{' at ' if path else ''}{path}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": None, "b": [True, 1, 1.5, "x"]}, {"a": None, "b": [True, 1, 1.5, "x"]}),
        ({"a": 2**64, "b": -(2**70), "c": 1e308}, {"a": 2**64, "b": -(2**70), "c": 1e308}),
        ({"a": OBJ["spec"], "b": OBJ["spec"]["list"]}, {"a": {"list": [{"x": 1}]}, "b": [{"x": 1}]}),
        ({"items": [OBJ]}, {"items": [OBJ.to_dict()]}),
        (OBJ, OBJ.to_dict()),
        ({"a": Level.HIGH, "b": Way.UP, Way.UP: Word("x")}, {"a": 3, "b": "up", "up": "x"}),
        ({"a": ORDERED, "c": MappingProxyType({"d": (2,)})}, {"a": {"b": 1}, "c": {"d": [2]}}),
        ({"a": datetime(2026, 1, 2, tzinfo=UTC)}, {"a": "2026-01-02T00:00:00Z"}),
        ({"a": uuid.UUID(int=1), "b": Decimal("1.50")}, {"a": str(uuid.UUID(int=1)), "b": "1.50"}),
        (
            {"a": Typed(ports={80: "x"}, words={"c", "a", "b"})},
            {"a": {"share": 0.5, "token": "YWI=", "ports": {"80": "x"}, "words": ["a", "b", "c"]}},
        ),
    ],
)
def test_values_with_json_form_are_written(value: object, written: object) -> None:
    assert json.loads(write_json(value, "it")) == written


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(), max_size=3) | st.integers(0, 3), inner, max_size=3)
        | st.sets(st.integers(0, 9), max_size=2)
    ),
    max_leaves=8,
)


def expressible(value: object) -> bool:
    """Tell by another encoder, the standard library's, and by what it lets pass besides."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    return not has_number_keys(value)


def has_number_keys(value: Any) -> bool:
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return any(not isinstance(key, str) or has_number_keys(item) for key, item in fields.items())
    return isinstance(value, list) and any(has_number_keys(item) for item in cast("list[Any]", value))


@given(JSON)
def test_written_json_is_equal_or_rejected(value: object) -> None:
    try:
        written = write_json(value, "it")
    except MalformedObjectError:
        assert not expressible(value)
    else:
        assert json.loads(written) == value
