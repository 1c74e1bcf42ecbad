"""Absent required fields of objects that are converted."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import msgspec
import pydantic

from deltaloop.api.resource import Resource
from deltaloop.webhooks.core.zero_values import unset_choices, with_zero_values


class Mode(enum.Enum):
    ON = "on"


class Inner(msgspec.Struct, rename="camel"):
    some_text: str
    mode: Mode


class Spec(msgspec.Struct):
    text: str
    number: int
    share: float
    flag: bool
    listed: list[Inner]
    mapped: dict[str, int]
    optional: int | None
    port: int | str
    at: dt.datetime
    anything: Any
    choice: Literal["a", "b"]
    inner: Inner


class Widget(msgspec.Struct):
    spec: Spec


@dataclass
class DataSpec:
    number: int
    choice: Literal["a"]


class DictSpec(TypedDict):
    number: int
    choice: Literal["a"]


class ModelSpec(pydantic.BaseModel):
    number: int = pydantic.Field(alias="theNumber")


def read(cls: Any, obj: dict[str, Any]) -> Any:
    filled = with_zero_values(cls, obj)
    made = Resource.from_dict({"metadata": {}, **filled.fields}).decode(cls)
    unset_choices(made, filled.choices)
    return made


def test_each_type_has_its_zero_value() -> None:
    assert read(Widget, {}) == read(Widget, {"spec": {}}) == Widget(
        Spec(
            "", 0, 0.0, False, [], {}, None, 0, dt.datetime(1, 1, 1, tzinfo=dt.UTC), None,
            msgspec.UNSET, Inner("", msgspec.UNSET),  # type: ignore[arg-type]
        )
    )  # fmt: skip


def test_present_fields_are_unchanged() -> None:
    given = {"spec": {"text": "x", "listed": [{"mode": "on"}]}}
    made = read(Widget, given)
    assert (made.spec.text, made.spec.listed) == ("x", [Inner("", Mode.ON)])
    assert given == {"spec": {"text": "x", "listed": [{"mode": "on"}]}}, "the argument is not changed"


def test_other_classes() -> None:
    assert read(DataSpec, {}) == DataSpec(0, msgspec.UNSET)  # type: ignore[arg-type]
    assert read(DictSpec, {}) == {"number": 0}
    assert read(ModelSpec, {}).number == 0


def test_field_without_zero_value_remains_absent() -> None:
    class Odd(msgspec.Struct):
        pair: tuple[int, str]
        span: dt.timedelta

    filled = with_zero_values(Odd, {})
    assert (filled.fields, len(filled.found), filled.choices) == ({"pair": []}, 2, [])
