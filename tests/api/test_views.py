from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from deltaloop.api.views import ReadOnlyList, ReadOnlyMap, freeze, thaw

DATA: dict[str, Any] = {"a": {"b": [1, {"c": 2}]}, "d": None}


def merge_in_place(view: Any) -> None:
    view |= {"a": 1}


def add_in_place(view: Any) -> None:
    view += [1]


def repeat_in_place(view: Any) -> None:
    view *= 2


MAP_WRITES: dict[str, Callable[[Any], object]] = {
    "set": lambda view: operator.setitem(view, "a", 1),
    "del": lambda view: operator.delitem(view, "a"),
    "ior": merge_in_place,
    "update": lambda view: view.update(a=1),
    "setdefault": lambda view: view.setdefault("z", 1),
    "pop": lambda view: view.pop("a"),
    "popitem": lambda view: view.popitem(),
    "clear": lambda view: view.clear(),
}
LIST_WRITES: dict[str, Callable[[Any], object]] = {
    "set": lambda view: operator.setitem(view, 0, 1),
    "set slice": lambda view: operator.setitem(view, slice(None), []),
    "del": lambda view: operator.delitem(view, 0),
    "iadd": add_in_place,
    "imul": repeat_in_place,
    "append": lambda view: view.append(1),
    "extend": lambda view: view.extend([1]),
    "insert": lambda view: view.insert(0, 1),
    "remove": lambda view: view.remove(1),
    "pop": lambda view: view.pop(),
    "clear": lambda view: view.clear(),
    "sort": lambda view: view.sort(key=str),
    "reverse": lambda view: view.reverse(),
}


@pytest.mark.parametrize("write", MAP_WRITES.values(), ids=MAP_WRITES.keys())
def test_read_only_map_rejects_changes(write: Callable[[Any], object]) -> None:
    for view in (ReadOnlyMap(DATA), ReadOnlyMap(DATA)["a"]):
        with pytest.raises(TypeError):
            write(view)
    assert DATA == {"a": {"b": [1, {"c": 2}]}, "d": None}


@pytest.mark.parametrize("write", LIST_WRITES.values(), ids=LIST_WRITES.keys())
def test_read_only_list_rejects_changes(write: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        write(ReadOnlyMap(DATA)["a"]["b"])
    assert DATA == {"a": {"b": [1, {"c": 2}]}, "d": None}


def test_all_mutating_methods_are_rejected() -> None:
    reading = {"copy", "fromkeys", "get", "items", "keys", "values", "count", "index"}
    for plain, view in ((dict, ReadOnlyMap), (list, ReadOnlyList)):
        for name in (name for name in dir(plain) if not name.startswith("__") and name not in reading):
            assert hasattr(view, name), f"{view.__name__}.{name} says nothing of help"


def test_views_have_no_attributes_to_set() -> None:
    with pytest.raises(AttributeError):
        setattr(ReadOnlyMap(DATA), "spec", 1)  # noqa: B010  # a type checker sees what this test is about


def test_reading_of_views() -> None:
    view = ReadOnlyMap(DATA)
    assert view["a"]["b"][1]["c"] == 2
    assert view["a"]["b"][:1] == [1]
    assert view["a"]["b"][-1] == {"c": 2}
    assert list(view) == ["a", "d"]
    assert dict(view) == DATA
    assert view.get("x", 5) == 5
    assert "a" in view
    assert len(view) == 2
    assert {"c": 2} in view["a"]["b"]
    assert view["a"]["b"].index(1) == 0
    assert isinstance(next(iter(view.values())), ReadOnlyMap)
    assert all(isinstance(item, ReadOnlyMap) for item in view["a"]["b"] if item != 1)
    with pytest.raises(KeyError):
        view["nope"]


def test_equality_with_plain_data_and_with_views() -> None:
    view = ReadOnlyMap(DATA)
    assert view == DATA
    assert view == ReadOnlyMap(copy.deepcopy(DATA))
    assert {"a": view["a"], "d": None} == DATA
    assert view != {"a": 1}
    assert view["a"]["b"] == [1, {"c": 2}]
    assert view["a"]["b"] != [1]
    with pytest.raises(TypeError):
        hash(view)


def test_copies_of_views() -> None:
    view = ReadOnlyMap(DATA)
    assert copy.copy(view) is view
    mutable: Any = copy.deepcopy(view)
    assert [type(part) for part in (mutable, mutable["a"], mutable["a"]["b"])] == [dict, dict, list]
    mutable["a"]["b"].append(3)
    assert view["a"]["b"] == [1, {"c": 2}]
    assert view["a"]["b"].to_list() == [1, {"c": 2}]
    assert view["a"].to_dict() == {"b": [1, {"c": 2}]}
    assert thaw(view) == DATA
    assert thaw({"x": view, "y": (1, view["a"]["b"])}) == {"x": DATA, "y": [1, [1, {"c": 2}]]}
    assert freeze(1) == 1


def test_pickling_of_views() -> None:
    view = ReadOnlyMap(DATA)
    back = pickle.loads(pickle.dumps(view))
    assert back == view
    assert isinstance(back, ReadOnlyMap)
    assert isinstance(pickle.loads(pickle.dumps(view["a"]["b"])), ReadOnlyList)


def test_repr_shows_no_data() -> None:
    assert repr(ReadOnlyMap({"password": "hunter2"})) == "<read-only map of 1>"
    assert repr(ReadOnlyList(["hunter2"])) == "<read-only list of 1>"
