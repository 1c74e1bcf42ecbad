"""A list in turns does what the same deltas do in one go."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, DeltaType, WholeList
from deltaloop.cache.core.process_deltas import ListProcessing, Notification, process_deltas
from deltaloop.cache.core.real_fifo import TURN
from deltaloop.cache.errors import TransactionError
from deltaloop.cache.store import Indexer
from tests.cache.objects import pod

STATES = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 3), st.sampled_from(["n1", "n2"])))


def indexer_of(objects: dict[str, Resource]) -> Indexer[Resource]:
    indexer = Indexer[Resource](indexers={"node": lambda obj: [obj["spec"]["nodeName"]]})
    indexer.replace(objects.values())
    return indexer


def listing(known: dict[str, Resource], listed: dict[str, Resource]) -> WholeList[Resource]:
    gone = [
        Delta[Resource](DeltaType.DELETED, DeletedFinalStateUnknown(obj.key, obj))
        for name, obj in known.items()
        if name not in listed
    ]
    return WholeList([*gone, *(Delta(DeltaType.REPLACED, obj) for obj in listed.values())])


def in_one_go(deltas: WholeList[Resource], indexer: Indexer[Resource]) -> list[Notification[Resource]]:
    return list(process_deltas(deltas, indexer, is_in_initial_list=True))


def by_list(
    deltas: WholeList[Resource],
    indexer: Indexer[Resource],
    kind: Callable[..., ListProcessing[Resource]] = ListProcessing[Resource],
) -> list[Notification[Resource]]:
    work = kind(deltas, indexer, is_in_initial_list=True)
    before = sorted(indexer.list_keys())
    for _ in work.fill():
        assert sorted(indexer.list_keys()) == before, "readers see the old state until the commit"
    work.commit()
    return list(work.tell())


def check(
    known: dict[str, Resource], listed: dict[str, Resource], kind: Callable[..., ListProcessing[Resource]]
) -> None:
    deltas = listing(known, listed)
    one, other = indexer_of(known), indexer_of(known)
    assert by_list(deltas, other, kind) == in_one_go(deltas, one)
    assert {obj.name: obj for obj in other.list()} == {obj.name: obj for obj in one.list()} == listed
    assert other.list_index_func_values("node") == one.list_index_func_values("node")
    for node in ("n1", "n2"):
        assert other.index_keys("node", node) == one.index_keys("node", node)


def pods(state: dict[str, tuple[int, str]]) -> dict[str, Resource]:
    return {name: pod(name, version, node=node) for name, (version, node) in state.items()}


@given(known=STATES, listed=STATES)
def test_list_in_steps_equals_list_in_one_step(
    known: dict[str, tuple[int, str]], listed: dict[str, tuple[int, str]]
) -> None:
    check(pods(known), pods(listed), ListProcessing[Resource])


@pytest.mark.parametrize(("size", "turns"), [(TURN - 1, 0), (TURN, 1), (2 * TURN + 1, 2)])
def test_list_processing_yields_regularly(size: int, turns: int) -> None:
    objects = {f"p{number}": pod(f"p{number}", number + 1, node="n1") for number in range(size)}
    work = ListProcessing(listing({}, objects), indexer_of({}), is_in_initial_list=True)
    assert sum(1 for _ in work.fill()) == turns


def test_object_without_key_in_list_is_reported_after_other_objects() -> None:
    nameless = Resource.from_dict({"metadata": {}})
    deltas = WholeList([Delta(DeltaType.REPLACED, nameless), Delta(DeltaType.REPLACED, pod("a", 1, node="n1"))])
    indexer = indexer_of({})
    work = ListProcessing(deltas, indexer, is_in_initial_list=True)
    for _ in work.fill():
        pass
    work.commit()
    told = work.tell()
    assert next(told).obj == pod("a", 1, node="n1")  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]  # an addition
    with pytest.raises(TransactionError):
        next(told)
    assert [obj.name for obj in indexer.list()] == ["a"]


def test_an_index_added_while_it_is_filled_is_not_lost() -> None:
    objects = {"a": pod("a", 1, node="n1")}
    indexer = indexer_of({})
    work = ListProcessing(listing({}, objects), indexer, is_in_initial_list=True)
    for _ in work.fill():
        pass
    indexer.add_indexers({"name": lambda obj: [obj.name]})
    work.commit()
    assert indexer.index_keys("name", "a") == ["default/a"]
