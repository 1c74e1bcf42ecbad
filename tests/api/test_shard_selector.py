"""Hashes and ranges of shard selectors."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.errors import InvalidSelectorError
from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import HASH_SPACE, ShardField, ShardSelector, shard_hash

HALF = HASH_SPACE // 2


def config_map(name: str, *, namespace: str = "", uid: str = "") -> Resource:
    return Resource.from_dict({"metadata": {"name": name, "namespace": namespace, "uid": uid}})


@pytest.mark.parametrize(
    ("value", "number"),
    [  # published test vectors of FNV-1a
        ("", 0xCBF29CE484222325),
        ("a", 0xAF63DC4C8601EC8C),
        ("foobar", 0x85944171F73967E8),
        ("chongo was here!\n", 0x46810940EFF5F915),
    ],
)
def test_hash(value: str, number: int) -> None:
    assert shard_hash(value) == number


def test_text() -> None:
    selector = ShardSelector("namespace", [(0, HALF), (HALF, HASH_SPACE)])
    assert str(selector) == (
        "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')"
        " || shardRange(object.metadata.namespace, '0x8000000000000000', '0x10000000000000000')"
    )


@given(st.text(), st.lists(st.integers(1, HASH_SPACE - 1), max_size=5, unique=True))
def test_each_object_is_in_one_range(value: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), HASH_SPACE]
    ranges = list(itertools.pairwise(bounds))
    field: ShardField
    for field in ("uid", "namespace"):
        obj = config_map("a", namespace=value, uid=value)
        assert sum(ShardSelector(field, [each]).matches(obj) for each in ranges) == 1
        assert ShardSelector(field, ranges).matches(obj)


@pytest.mark.parametrize(
    ("field", "ranges"),
    [
        ("labels", [(0, 1)]),
        ("uid", []),
        ("uid", [(1, 1)]),
        ("uid", [(2, 1)]),
        ("uid", [(-1, 1)]),
        ("uid", [(0, HASH_SPACE + 1)]),
        ("uid", [(0, 1), (3, 2)]),
    ],
)
def test_invalid_selectors(field: ShardField, ranges: list[tuple[int, int]]) -> None:
    with pytest.raises(InvalidSelectorError):
        ShardSelector(field, ranges)


def test_equal_selectors_have_equal_hashes() -> None:
    first, second = (ShardSelector("uid", [(0, 5)]) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first not in (ShardSelector("namespace", [(0, 5)]), ShardSelector("uid", [(0, 6)]), "uid")
