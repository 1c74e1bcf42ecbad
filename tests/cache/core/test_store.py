"""Indexes: examples from upstream, and a machine against indexes computed anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deltaloop.api.path import field_path
from deltaloop.api.resource import Resource
from deltaloop.cache.core.store import IndexedItems, IndexFailure, StoreIndex
from deltaloop.cache.errors import IndexerConflictError, UnknownIndexError
from tests.cache.machines import run_machine
from tests.cache.objects import pod
from tests.having import having


def words(text: str) -> list[str]:
    return text.split()


def length(text: str) -> list[str]:
    return [str(len(text))]


def fails_on_x(text: str) -> list[str]:
    if "x" in text:
        raise ValueError("no x, please")
    return [text[:1]] if text else []


def test_empty_index_set_is_removed() -> None:
    items = IndexedItems({"words": words})
    items.put("k1", "a")
    items.put("k2", "a")
    items.delete("k1")
    assert items.index.values("words") == ["a"]
    items.delete("k2")
    assert items.index.values("words") == []
    items.delete("k2")


def test_several_values_follow_additions_changes_and_removals() -> None:
    items = IndexedItems({"words": words})
    items.put("k1", "foo bar bar")
    items.put("k2", "bar")
    assert items.index.keys("words", "bar") == {"k1", "k2"}
    items.put("k1", "foo fizz")
    assert items.index.keys("words", "bar") == {"k2"}
    assert items.index.values("words") == ["bar", "fizz", "foo"]
    items.put("k2", "")
    assert items.index.values("words") == ["fizz", "foo"]
    assert items.index.keys("words", "bar") == set()


def test_a_returned_set_is_a_copy() -> None:
    items = IndexedItems({"words": words})
    items.put("k", "a")
    items.index.keys("words", "a").clear()
    assert items.index.keys("words", "a") == {"k"}


def test_later_indexers_cover_stored_objects() -> None:
    items = IndexedItems[str]({"words": words})
    items.put("k", "ab cd")
    assert items.add_indexers({"length": length}) == []
    assert items.index.keys("length", "5") == {"k"}
    items.put("k", "ab")
    assert items.index.values("length") == ["2"]


def test_indexer_can_be_added_again_only_with_same_function() -> None:
    items = IndexedItems[Resource]({"node": field_path("spec.nodeName")})
    items.put("default/a", pod("a", node="n1"))
    items.add_indexers({"node": field_path("spec.nodeName")})
    with pytest.raises(IndexerConflictError, check=having(names=("node",))) as caught:
        items.add_indexers({"new": field_path("spec.x"), "node": field_path("spec.y")})
    assert caught.value.names == ("node",)
    assert [*items.index.functions] == ["node"]
    assert items.index.keys("node", "n1") == {"default/a"}


def test_unknown_index_error_lists_known_indexes() -> None:
    index = StoreIndex[str]()
    index.add_indexers({"words": words}, {})
    for call in (
        lambda: index.keys("nodes", "a"),
        lambda: index.values("nodes"),
        lambda: index.values_of("nodes", "a"),
    ):
        with pytest.raises(UnknownIndexError, check=having(name="nodes")):
            call()


def test_failing_index_function_affects_only_its_index() -> None:
    items = IndexedItems({"first": fails_on_x, "words": words})
    items.put("k", "a b")
    (failure,) = items.put("k", "x y")
    assert (failure.index, failure.key, type(failure.error)) == ("first", "k", ValueError)
    assert items.objects.get("k") == "x y"
    assert items.index.values("first") == []
    assert items.index.values("words") == ["x", "y"]
    assert items.put("k", "b") == []
    assert items.index.values("first") == ["b"]
    assert [failure.key for failure in items.replace({"k1": "x", "k2": "c"})] == ["k1"]
    assert items.index.values("first") == ["c"]


def test_added_index_function_that_fails_on_stored_object_is_reported() -> None:
    items = IndexedItems[str]()
    items.put("k1", "x")
    items.put("k2", "c")
    assert [failure.key for failure in items.add_indexers({"first": fails_on_x})] == ["k1"]
    assert items.index.values("first") == ["c"]


@pytest.mark.parametrize("result", ["node", None, [1], ["a", None], 3])
def test_index_values_must_be_a_collection_of_strings(result: object) -> None:
    items = IndexedItems[str]({"bad": lambda _: result})  # type: ignore[dict-item,return-value]  # pyright: ignore[reportArgumentType]  # the fault
    (failure,) = items.put("k", "a")
    assert isinstance(failure.error, TypeError)
    assert items.index.values("bad") == []


def test_nondeterministic_index_function_leaves_no_stale_keys() -> None:
    answers = iter(["a", "b", "c"])
    items = IndexedItems[str]({"fickle": lambda _: [next(answers)]})
    items.put("k", "")
    items.put("k", "")
    assert items.index.values("fickle") == ["b"]
    items.delete("k")
    assert items.index.values("fickle") == []


KEYS = st.sampled_from(["k1", "k2", "k3"])
TEXTS = st.sampled_from(["", "a", "b", "a b", "b a", "a a", "x", "x a", "c d e"])
FUNCTIONS = {"words": words, "length": length, "first": fails_on_x}


def make_machine(make: Callable[[], IndexedItems[str]]) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.items = make()
            self.model: dict[str, str] = {}
            self.indexes: set[str] = set()

        @rule(key=KEYS, text=TEXTS)
        def put(self, key: str, text: str) -> None:
            self.check(self.items.put(key, text), {key: text})
            self.model[key] = text

        @rule(key=KEYS)
        def delete(self, key: str) -> None:
            self.items.delete(key)
            self.model.pop(key, None)

        @rule(items=st.dictionaries(KEYS, TEXTS))
        def replace(self, items: dict[str, str]) -> None:
            self.check(self.items.replace(items), items)
            self.model = dict(items)

        @rule(name=st.sampled_from([*FUNCTIONS]))
        def add_indexer(self, name: str) -> None:
            new = name not in self.indexes
            failures = self.items.add_indexers({name: FUNCTIONS[name]})
            self.indexes.add(name)
            if new and name == "first":
                self.check(failures, self.model)
            else:
                assert failures == []

        def check(self, failures: list[IndexFailure], written: dict[str, str]) -> None:
            expected = {key for key, text in written.items() if "x" in text} if "first" in self.indexes else set[str]()
            assert {failure.key for failure in failures} == expected

        @invariant()
        def indexes_equal_what_is_computed_anew(self) -> None:
            assert self.items.objects == self.model
            for name in self.indexes:
                expected: dict[str, set[str]] = {}
                for key, text in self.model.items():
                    if name == "first" and "x" in text:
                        continue
                    for value in FUNCTIONS[name](text):
                        expected.setdefault(value, set()).add(key)
                index = self.items.index
                assert {value: index.keys(name, value) for value in index.values(name)} == expected

    return Machine


def test_the_index_agrees_with_the_model() -> None:
    run_machine(make_machine(IndexedItems[str]))


def test_index_function_that_returns_string_is_reported() -> None:
    def initial(text: str) -> Any:
        return text[:1]

    items = IndexedItems({"initial": initial})
    (failure,) = items.put("k1", "a")
    assert isinstance(failure.error, TypeError)
    assert items.index.values("initial") == []


@pytest.mark.parametrize(
    ("returned", "filed"),
    [
        (["a"], ["a"]),
        (["b", "a", "b"], ["a", "b"]),
        (("a",), ["a"]),
        (range(0), []),
        ([], []),
        ("a", None),
        (["a", 5], None),
        ([5], None),
        (5, None),
        (None, None),
    ],
    ids=repr,
)
@pytest.mark.parametrize("way", ["put", "put again", "replace", "added later", "write"])
def test_all_writes_treat_index_results_equally(way: str, returned: Any, filed: list[str] | None) -> None:
    def function(obj: str) -> Any:
        return ["before"] if obj == "old" else returned

    items = IndexedItems[str]({} if way == "added later" else {"index": function})
    failures: list[IndexFailure] = []
    if way == "put again":
        items.put("k", "old")
    if way in ("put", "put again", "added later"):
        failures = items.put("k", "new")
    if way == "replace":
        failures = items.replace({"k": "new"})
    if way == "write":
        assert items.write([("k", "new")], failures) == [None]
    if way == "added later":
        failures = items.add_indexers({"index": function})
    assert items.index.values("index") == (filed or [])
    assert [(failure.index, failure.key, type(failure.error)) for failure in failures] == (
        [("index", "k", TypeError)] if filed is None else []
    )
    if filed is None:
        kind = type(returned).__name__
        text = "an item of type int" if isinstance(returned, list) else kind
        assert str(failures[0].error) == f"an index function must return a list of strings, got {text}"
    assert items.objects.get("k") == "new"


def test_objects_are_found_by_keys_in_their_order_and_unknown_keys_are_passed_over() -> None:
    items = IndexedItems[str]()
    items.put("a", "one")
    items.put("b", "two")
    assert items.with_keys(["b", "unknown", "a"]) == ["two", "one"]
