"""An edit sends what it changed: nothing that the class does not know is lost, no default is added."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from deltaloop.api.json_writing import plain_fields
from deltaloop.api.set_fields import set_fields
from deltaloop.client.core.edited_objects import edit_patch


class Port(Struct):
    name: str
    number: int = 80


class Part(Struct, rename="camel"):
    first_one: int = 1
    other: str | None = None


class Spec(Struct):
    size: int = 3
    ports: list[Port] = []
    words: list[str] = []
    part: Part = msgspec.field(default_factory=Part)
    absent: str | UnsetType = UNSET
    free: dict[str, int] = {}


@dataclass
class Plain:
    spec: Spec
    names: set[str] = field(default_factory=set[str])


def patch_of(stored: dict[str, Any], change: Callable[[Plain], object]) -> dict[str, Any]:
    obj = msgspec.convert(stored, Plain)
    before = plain_fields(obj)
    change(obj)
    return edit_patch(stored, before, plain_fields(obj), set_fields(obj))


def setting(path: str, value: Any) -> Callable[[Plain], None]:
    def change(obj: Plain) -> None:
        *way, last = path.split(".")
        inner: Any = obj
        for name in way:
            inner = getattr(inner, name)
        setattr(inner, last, value)

    return change


KEPT = {"unknown": {"a": [1]}, "size": 5}
PORTS: list[dict[str, Any]] = [{"name": "a", "number": 1, "extra": True}, {"name": "b"}, {"name": "c", "extra": False}]


Change = Callable[[Plain], object]

CASES: list[tuple[dict[str, Any], Change, dict[str, Any]]] = [
    ({}, lambda obj: None, {}),
    ({"unknown": 1}, lambda obj: None, {}),
    ({}, setting("spec.size", 3), {}),  # a default that nobody set is not written
    (KEPT, setting("spec.size", 3), {"size": 3}),  # it was another one
    (KEPT, setting("spec.size", 4), {"size": 4}),
    ({}, setting("spec.part.first_one", 2), {"part": {"firstOne": 2}}),
    ({"part": {"more": 1}}, setting("spec.part.first_one", 2), {"part": {"firstOne": 2}}),
    ({"part": {"other": "a", "more": 1}}, setting("spec.part.other", None), {"part": {"other": None}}),
    ({"absent": "a"}, setting("spec.absent", UNSET), {"absent": None}),
    ({}, setting("spec.absent", "a"), {"absent": "a"}),
    ({"absent": "a"}, setting("spec.part", Part(other="b")), {"part": {"other": "b"}}),
    ({"words": ["a"]}, lambda obj: obj.spec.words.append("b"), {"words": ["a", "b"]}),
    ({"free": {"a": 1}}, lambda obj: obj.spec.free.pop("a"), {"free": {"a": None}}),
    (
        {"ports": PORTS},
        lambda obj: setattr(obj.spec.ports[1], "number", 2),
        {
            "ports": [PORTS[0], {"name": "b", "number": 2}, PORTS[2]],
        },
    ),
    ({"ports": PORTS}, lambda obj: obj.spec.ports.insert(0, Port("z")), {"ports": [{"name": "z"}, *PORTS]}),
    ({"ports": PORTS}, lambda obj: obj.spec.ports.pop(0), {"ports": PORTS[1:]}),
    ({"ports": PORTS}, lambda obj: obj.spec.ports.reverse(), {"ports": PORTS[::-1]}),
    (
        {"ports": PORTS},
        lambda obj: setattr(obj.spec.ports[0], "number", 80),
        {
            "ports": [{**PORTS[0], "number": 80}, *PORTS[1:]],
        },
    ),
    ({}, lambda obj: obj.spec.ports.append(Port("a")), {"ports": [{"name": "a"}]}),
]


@pytest.mark.parametrize(("spec", "change", "wanted"), CASES)
def test_edit_sends_only_changed_fields(spec: dict[str, Any], change: Change, wanted: dict[str, Any]) -> None:
    assert patch_of({"spec": spec}, change) == ({"spec": wanted} if wanted else {})


def test_unnamed_list_items_keep_unknown_fields_by_position() -> None:
    class Whole(Struct):
        parts: list[Part]

    Whole.__annotations__["parts"] = list[Part]
    stored = {"parts": [{"firstOne": 5, "more": 1}, {"firstOne": 6, "more": 2}]}
    obj = msgspec.convert(stored, Whole)
    before = plain_fields(obj)
    obj.parts[1].first_one = 1
    patch = edit_patch(stored, before, plain_fields(obj), set_fields(obj))
    assert patch == {"parts": [stored["parts"][0], {"firstOne": 1, "more": 2}]}


def test_set_fields_of_dataclass() -> None:
    assert set_fields(Plain(Spec(size=4), {"b", "a"})) == {"spec": {"size": 4}, "names": ["a", "b"]}
    assert set_fields(Plain(Spec())) == {"spec": {}}


STORED = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 4),
        "words": st.lists(st.sampled_from("ab"), max_size=3),
        "part": st.fixed_dictionaries({}, optional={"firstOne": st.integers(0, 2), "more": st.integers(0, 2)}),
        "ports": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from("abc")},
                optional={"number": st.sampled_from([80, 1]), "more": st.integers(0, 2)},
            ),
            max_size=3,
        ),
        "absent": st.sampled_from("ab"),
        "free": st.dictionaries(st.sampled_from("ab"), st.integers(0, 1)),
        "unknown": st.integers(0, 2),
    },
)


@given(STORED, STORED)
def test_edited_object_has_wanted_fields_and_keeps_others(one: dict[str, Any], other: dict[str, Any]) -> None:
    stored: dict[str, Any] = {"spec": one, "metadata": {"name": "a"}}
    wanted = msgspec.convert({"spec": other}, Plain)
    original = copy.deepcopy(stored)
    patch = patch_of(stored, setting("spec", wanted.spec))
    assert stored == original
    result = merged(stored, patch)
    assert msgspec.convert(result, Plain) == wanted
    assert result["metadata"] == {"name": "a"}
    assert result["spec"].get("unknown") == one.get("unknown")
    if "more" in one.get("part", {}):
        assert result["spec"]["part"]["more"] == one["part"]["more"]
    if patch_of(result, lambda obj: None):
        raise AssertionError("an edit that changes nothing sends something")


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, as it is written there."""
    if not isinstance(patch, dict):
        return patch
    result = dict(cast("dict[str, Any]", target)) if isinstance(target, dict) else {}
    for name, value in cast("dict[str, Any]", patch).items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def test_long_list_is_edited_in_linear_time() -> None:
    looked_at = 0

    class Counted(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            nonlocal looked_at
            looked_at += 1
            return super().__getitem__(name)

    def listed(count: int, changed: int = -1) -> dict[str, Any]:
        return {"items": [Counted(name=f"n{place}", size=int(place == changed)) for place in range(count)]}

    wanted = listed(2_000, changed=1_999)
    patch = edit_patch(listed(2_000), listed(2_000), wanted, wanted)
    assert patch["items"][1_999] == {"name": "n1999", "size": 1}
    assert 0 < looked_at < 10 * 2_000
