"""JSON patch: as the RFC has it where a path exists, as the real server has it where none does."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deltaloop.api.json_values import is_mapping, items, mapping
from deltaloop.apiserver.core.json_patch import MAX_COPIED, MAX_SHIFTED, JsonPatchError, apply_operations

LIBRARY: Any = importlib.import_module("jsonpatch")
POINTERS: Any = importlib.import_module("jsonpointer")


def _apply(document: Any, *operations: dict[str, Any] | None) -> Any:
    return apply_operations(copy.deepcopy(document), list(operations))


_scalars = st.sampled_from(["x", 1, 2.5, True])
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/c", "~"]), inner)
)
_documents = st.dictionaries(st.sampled_from(["a", "b/c", "~", "list"]), _values, min_size=1)


def _places(value: Any, path: str = "") -> list[str]:
    found: list[str] = []
    if is_mapping(value):
        for name, inner in value.items():
            below = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
            found += [below, *_places(inner, below)]
    else:
        for place, inner in enumerate(items(value)):
            found += [f"{path}/{place}", *_places(inner, f"{path}/{place}")]
    return found


def _agrees_with_the_library(apply: Any, data: st.DataObject) -> None:
    """One operation on what is there: a library that follows the RFC gives the same."""
    document = data.draw(_documents)
    places = st.sampled_from(_places(document))
    done = data.draw(st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]))
    operation: dict[str, Any] = {"op": done, "path": data.draw(places)}
    if done in ("move", "copy"):
        operation["from"] = data.draw(places)
        # The RFC refuses what is moved into itself; the real server takes it away first, and then finds the place.
        assume(done != "move" or not operation["path"].startswith(operation["from"] + "/"))
    else:
        operation["value"] = data.draw(_values)
    expected: Any
    try:
        expected = LIBRARY.apply_patch(document, [operation])
    except (LIBRARY.JsonPatchException, POINTERS.JsonPointerException, TypeError):
        expected = "refused"
    try:
        result = apply(copy.deepcopy(document), [operation])
    except JsonPatchError:
        result = "refused"
    assert result == expected


@given(st.data())
def test_operations_follow_the_rfc(data: st.DataObject) -> None:
    _agrees_with_the_library(apply_operations, data)


def _inserts_behind(document: Any, operations: list[dict[str, Any]]) -> Any:
    """A seeded bug: an addition to a list goes behind the place that was named."""
    operation = dict(operations[0])
    parent, _, last = operation["path"].rpartition("/")
    if operation["op"] == "add" and last.isdigit():
        operation["path"] = f"{parent}/{int(last) + 1}"
    return apply_operations(document, [operation])


@pytest.mark.nightly
def test_seeded_bug_is_found() -> None:
    @settings(max_examples=300, database=None, derandomize=True)
    @given(st.data())
    def machine(data: st.DataObject) -> None:
        _agrees_with_the_library(_inserts_behind, data)

    with pytest.raises(AssertionError):
        machine()


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "copy", "from": "/none", "path": "/none"}, {"none": None}),
        ({"op": "copy", "from": "/d/none", "path": "/d/x"}, {"d": {"k": "1", "x": None}}),
        ({"op": "replace", "path": "/none", "value": 1}, {"none": 1}),
        ({"op": "add", "path": "/none"}, {"none": None}),
        ({"op": "test", "path": "/none", "value": None}, {}),
        ({"op": "test", "path": "/none"}, {}),
        ({"op": "add", "path": "/l/-1", "value": "c"}, {"l": ["a", "b", "c"]}),
        ({"op": "add", "path": "/l/-3", "value": "c"}, {"l": ["c", "a", "b"]}),
        ({"op": "replace", "path": "/l/-1", "value": "c"}, {"l": ["a", "c"]}),
        ({"op": "remove", "path": "/l/-2"}, {"l": ["b"]}),
        ({"op": "copy", "from": "/l/-1", "path": "/l/+0"}, {"l": ["b", "a", "b"]}),
        ({"op": "test", "path": "/l/00", "value": "a"}, {}),
        ({"op": "add", "path": "anything/d/q", "value": "7"}, {"d": {"k": "1", "q": "7"}}),
        ({"op": "replace", "path": "", "value": {"a": 1}}, "whole"),
        ({"op": "test", "path": "", "value": {"d": {"k": "1"}, "l": ["a", "b"]}}, {}),
    ],
)
def test_operations_of_the_real_server_beyond_the_rfc(operation: dict[str, Any], result: Any) -> None:
    document = {"d": {"k": "1"}, "l": ["a", "b"]}
    expected = {"a": 1} if result == "whole" else {**document, **result}
    assert _apply(document, operation) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "copy", "from": "/none/x", "path": "/d/x"},
        {"op": "move", "from": "/none", "path": "/d/x"},
        {"op": "remove", "path": "/d/none"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "", "value": {}},
        {"op": "replace", "path": ""},
        {"op": "replace", "path": "/l/-", "value": "c"},
        {"op": "add", "path": "/l/3", "value": "c"},
        {"op": "add", "path": "/l/-4", "value": "c"},
        {"op": "remove", "path": "/l/-3"},
        {"op": "copy", "from": "/l/2", "path": "/l/0"},
        {"op": "move", "from": "/l/-", "path": "/l/0"},
        {"op": "add", "path": "/l/1_0", "value": "c"},
        {"op": "test", "path": "/n", "value": 1.0},
        {"op": "test", "path": "/n", "value": True},
        {"op": "test", "path": "", "value": {}},
        {"op": "add", "path": "d", "value": 1},
        {"op": "add", "path": "/n/x", "value": 1},
        {"op": "other", "path": "/n"},
        {"path": "/n"},
        None,
    ],
)
def test_invalid_operations_are_rejected(operation: dict[str, Any] | None) -> None:
    with pytest.raises(JsonPatchError):
        _apply({"d": {"k": "1"}, "l": ["a", "b"], "n": 1}, operation)


def test_value_is_not_shared_with_the_patch() -> None:
    value: dict[str, Any] = {"a": 1}
    operations = [{"op": "add", "path": "/x", "value": value}, {"op": "add", "path": "/x/b", "value": 2}]
    assert apply_operations({}, operations) == {"x": {"a": 1, "b": 2}}
    assert value == {"a": 1}


def test_size_of_copies_is_bounded() -> None:
    doubling: list[Any] = [{"op": "add", "path": "/a", "value": ["x" * 1000]}]
    doubling += [{"op": "copy", "from": "/a", "path": "/a/-"}] * 30
    with pytest.raises(JsonPatchError, match="too large"):
        apply_operations({}, doubling)
    size = MAX_COPIED // 4
    fits: list[Any] = [{"op": "copy", "from": "/a", "path": f"/{place}"} for place in range(3)]
    assert len(mapping(apply_operations({"a": "x" * size}, fits))) == 4


def test_move_removes_the_value_before_it_resolves_the_target() -> None:
    moved = apply_operations({"a": ["x", ["y"], []]}, [{"op": "move", "from": "/a/1", "path": "/a/1/0"}])
    assert moved == {"a": ["x", [["y"]]]}
    with pytest.raises(JsonPatchError):
        apply_operations({"a": {"b": 1}}, [{"op": "move", "from": "/a", "path": "/a/b"}])


@pytest.mark.parametrize("operation", [{"op": "add", "path": "/a/0", "value": 1}, {"op": "remove", "path": "/a/0"}])
def test_patch_that_moves_too_many_items_is_rejected(operation: dict[str, object]) -> None:
    size = 20_000
    fits = MAX_SHIFTED // (size * 2)
    apply_operations({"a": [0] * size}, [operation] * fits)
    with pytest.raises(JsonPatchError, match="moves too many items"):
        apply_operations({"a": [0] * size}, [operation] * fits * 4)
    at_the_end: list[object] = [{"op": "add", "path": "/a/-", "value": 1}]
    apply_operations({"a": [0] * size}, at_the_end * fits * 4)
