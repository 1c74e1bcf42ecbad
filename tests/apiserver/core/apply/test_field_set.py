"""Sets of fields against the naive model: a Python set of paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.apiserver.core.apply import field_set
from deltaloop.apiserver.core.apply.field_set import (
    FieldSet,
    difference,
    difference_below,
    has,
    intersection,
    is_field_set,
    key_step,
    paths,
    shown,
    union,
    value_step,
)
from tests.nightly import examples

Path = tuple[str, ...]
_STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"a"}', 'v:"x"'])
MODELS = st.sets(st.lists(_STEPS, min_size=1, max_size=3).map(tuple), max_size=6)


def tree(members: set[Path]) -> FieldSet:
    root: FieldSet = {}
    for path in sorted(members, key=lambda one: (len(one), one), reverse=True):
        below = root
        for step in path:
            below = below.setdefault(step, {})
        if below:
            below["."] = {}
    return root


def members_of(fields: FieldSet) -> set[Path]:
    found = list(paths(fields))
    assert len(found) == len(set(found))
    return set(found)


def is_normal(below: FieldSet) -> bool:
    """Nothing is said twice or in another way: no ``.`` alone, no empty branches."""
    return below.keys() != {"."} and all(is_normal(inner) for step, inner in below.items() if step != ".")


@given(MODELS)
def test_tree_contains_the_paths_it_was_built_from(members: set[Path]) -> None:
    assert members_of(tree(members)) == members
    assert is_field_set(tree(members))
    assert all(has(tree(members), path) for path in members)


@settings(max_examples=examples(60))
@given(MODELS, MODELS)
def test_operations_match_set_operations(left: set[Path], right: set[Path]) -> None:
    for made, wanted in (
        (union(tree(left), tree(right)), left | right),
        (difference(tree(left), tree(right)), left - right),
        (intersection(tree(left), tree(right)), left & right),
        (
            difference_below(tree(left), tree(right)),
            {path for path in left if not any(path[: len(other)] == other for other in right)},
        ),
    ):
        assert members_of(made) == wanted
        assert is_normal(made)
        assert made == tree(wanted)


@settings(max_examples=examples(60))
@given(MODELS, MODELS)
def test_path_membership(members: set[Path], asked: set[Path]) -> None:
    for path in asked:
        assert has(tree(members), path) is (path in members)


@settings(max_examples=examples(60))
@given(MODELS, MODELS)
def test_operations_do_not_change_arguments(left: set[Path], right: set[Path]) -> None:
    first, second = tree(left), tree(right)
    union(first, second)
    difference(first, second)
    intersection(first, second)
    difference_below(first, second)
    assert (first, second) == (tree(left), tree(right))


def difference_that_drops_what_is_below(left: FieldSet, right: FieldSet) -> FieldSet:
    return {step: below for step, below in left.items() if step not in right}


@pytest.mark.nightly
def test_seeded_bug_is_found() -> None:
    left: set[Path] = {("f:a",), ("f:a", "f:b")}
    right: set[Path] = {("f:a",)}
    assert members_of(difference(tree(left), tree(right))) == {("f:a", "f:b")}
    assert members_of(difference_that_drops_what_is_below(tree(left), tree(right))) != left - right


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:size"), ".spec.size"),
        (("f:spec", "f:list", 'k:{"name":"a"}', "f:v"), '.spec.list[name="a"].v'),
        (("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'), '.ports[containerPort=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"example.com/x"'), '.finalizers[="example.com/x"]'),
        (("f:list", "i:3"), ".list[3]"),
    ],
)
def test_readable_paths(path: Path, text: str) -> None:
    assert shown(path) == text


def test_steps() -> None:
    assert key_step({"protocol": "TCP", "containerPort": 80}) == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert value_step("a") == 'v:"a"'
    assert field_set.field_step("a.b/c") == "f:a.b/c"


@pytest.mark.parametrize(
    "wrong",
    [None, [], "f:a", {"a": {}}, {"f:a": None}, {"k:name": {}}, {"k:[]": {}}, {"v:": {}}, {"i:x": {}}, {"f": {}}],
)
def test_invalid_field_sets_are_detected(wrong: Any) -> None:
    assert not is_field_set(wrong)
