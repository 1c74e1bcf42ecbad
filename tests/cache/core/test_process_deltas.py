"""What deltas do to a store, and who hears what."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, DeltaType, WholeList, whole_list, with_keys
from deltaloop.cache.core.process_deltas import (
    AddNotification,
    DeleteNotification,
    ListProcessing,
    Notification,
    UpdateNotification,
    process_deltas,
    process_keyed,
)
from deltaloop.cache.core.real_fifo import TURN
from deltaloop.cache.errors import TransactionError
from deltaloop.cache.store import Indexer
from tests.cache.objects import nameless, pod

PRESENT = [DeltaType.ADDED, DeltaType.UPDATED, DeltaType.REPLACED, DeltaType.SYNC]


def store(*objects: Resource) -> Indexer[Resource]:
    indexer = Indexer[Resource]()
    indexer.replace(objects)
    return indexer


@pytest.mark.parametrize("delta_type", PRESENT)
@pytest.mark.parametrize("initial", [True, False])
def test_unknown_object_is_added(delta_type: DeltaType, initial: bool) -> None:
    indexer, obj = store(), pod("a", 1)
    told = list(process_deltas((Delta(delta_type, obj),), indexer, is_in_initial_list=initial))
    assert told == [AddNotification(obj, is_in_initial_list=initial)]
    assert indexer.list() == [obj]


@pytest.mark.parametrize("delta_type", PRESENT)
def test_known_object_is_updated(delta_type: DeltaType) -> None:
    old, new = pod("a", 1), pod("a", 2)
    indexer = store(old)
    told = list(process_deltas((Delta(delta_type, new),), indexer, is_in_initial_list=True))
    assert told == [UpdateNotification(old, new)]
    assert indexer.list() == [new]


def test_deletion_removes_object_from_store() -> None:
    indexer, last = store(pod("a", 1)), pod("a", 2)
    told = list(process_deltas((Delta(DeltaType.DELETED, last),), indexer, is_in_initial_list=False))
    assert told == [DeleteNotification(last, final_state_known=True)]
    assert indexer.list() == []


def test_deletion_of_an_unknown_object_is_not_notified() -> None:
    indexer, kept = store(pod("b", 1)), pod("b", 2)
    deltas = (Delta(DeltaType.DELETED, pod("a", 2)), Delta(DeltaType.UPDATED, kept))
    assert [type(told) for told in process_deltas(deltas, indexer, is_in_initial_list=False)] == [UpdateNotification]
    gone = Delta[Resource](DeltaType.DELETED, DeletedFinalStateUnknown("default/a", pod("a", 1)))
    told = list(process_deltas((gone,), indexer, is_in_initial_list=False))
    assert told == [DeleteNotification(pod("a", 1), final_state_known=False)]
    assert indexer.list() == [kept]


def test_missed_deletion_has_unknown_final_state() -> None:
    known = pod("a", 1)
    indexer = store(known)
    gone = Delta[Resource](DeltaType.DELETED, DeletedFinalStateUnknown("default/a", known))
    told = list(process_deltas((gone,), indexer, is_in_initial_list=False))
    assert told == [DeleteNotification(known, final_state_known=False)]
    assert len(indexer) == 0


def test_store_is_written_before_notifications() -> None:
    indexer = store()
    deltas = (
        Delta(DeltaType.ADDED, pod("a", 1)),
        Delta(DeltaType.UPDATED, pod("a", 2)),
        Delta(DeltaType.DELETED, pod("a", 3)),
    )
    seen = [
        (type(told).__name__, [obj.resource_version for obj in indexer.list()])
        for told in process_deltas(deltas, indexer, is_in_initial_list=False)
    ]
    assert seen == [("AddNotification", ["1"]), ("UpdateNotification", ["2"]), ("DeleteNotification", [])]


def test_resync_notification_has_identical_old_and_new() -> None:
    obj = pod("a")
    (told,) = process_deltas((Delta(DeltaType.SYNC, obj),), store(obj), is_in_initial_list=False)
    assert isinstance(told, UpdateNotification)
    assert told.old is told.new
    assert not told.is_unchanged


@pytest.mark.parametrize(
    ("new", "unchanged"),
    [
        (pod("a", 1, uid="u"), True),
        (pod("a", 2, uid="u"), False),
        (pod("a", 1, uid="other"), False),
        (pod("a", "", uid="u"), False),
    ],
)
def test_a_relist_of_the_same_state_is_marked(new: Resource, unchanged: bool) -> None:
    indexer = store(pod("a", new.resource_version and 1, uid="u"))
    (told,) = process_deltas((Delta(DeltaType.REPLACED, new),), indexer, is_in_initial_list=False)
    assert isinstance(told, UpdateNotification)
    assert told.is_unchanged is unchanged


def test_add_notification_is_not_in_initial_list_by_default() -> None:
    assert not AddNotification(pod("a")).is_in_initial_list


def test_objects_without_key_are_reported_after_other_objects() -> None:
    indexer = store()
    objects = (nameless(1), pod("a", 2), nameless(3), pod("b", 4))
    told = process_deltas(tuple(Delta(DeltaType.ADDED, obj) for obj in objects), indexer, is_in_initial_list=False)
    assert [next(told), next(told)] == [AddNotification(pod("a", 2)), AddNotification(pod("b", 4))]
    with pytest.raises(TransactionError) as failed:
        next(told)
    assert (sorted(failed.value.failures), failed.value.total) == ([0, 2], 4)
    assert sorted(indexer.list_keys()) == ["default/a", "default/b"]


def test_different_keys_are_written_in_one_step() -> None:
    indexer = store()
    states = [pod("a", 1), pod("b", 2), pod("a", 3), pod("b", 4)]
    deltas = tuple(Delta(DeltaType.UPDATED, obj) for obj in states)
    seen = [
        sorted(obj.resource_version for obj in indexer.list())
        for _ in process_deltas(deltas, indexer, is_in_initial_list=False)
    ]
    assert seen == [["1", "2"], ["1", "2"], ["3", "4"], ["3", "4"]]


class Forgetful:
    """A store that does not say what was there before the last write."""

    def key_of(self, obj: Resource) -> str:
        return obj.key

    def transaction_by_key(self, writes: Iterable[tuple[str, Resource | None]]) -> list[Resource | None]:
        olds: list[Resource | None] = [None for _ in writes]
        return olds[:-1]


def test_store_with_too_few_results_raises_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        list(process_deltas((Delta(DeltaType.ADDED, pod("a")),), Forgetful(), is_in_initial_list=False))


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(
    stored=st.sets(NAMES),
    changes=st.dictionaries(NAMES, st.sampled_from([DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED, None])),
    initial=st.booleans(),
)
def test_deltas_with_given_keys_have_same_result(
    stored: set[str], changes: dict[str, DeltaType | None], initial: bool
) -> None:
    """None stands for a deletion that nobody saw."""
    deltas = [
        Delta[Resource](DeltaType.DELETED, DeletedFinalStateUnknown(f"default/{name}", pod(name, 1)))
        if delta_type is None
        else Delta[Resource](delta_type, pod(name, 2))
        for name, delta_type in changes.items()
    ]
    one, other = (store(*(pod(name, 1) for name in sorted(stored))) for _ in range(2))
    told = list(process_deltas(tuple(deltas), one, is_in_initial_list=initial))
    keyed = with_keys(deltas, [f"default/{name}" for name in changes])
    assert process_keyed(keyed, other, is_in_initial_list=initial) == told
    assert other.list() == one.list()


STATES = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 3), st.sampled_from(["n1", "n2"])))


def indexer_of(objects: dict[str, Resource]) -> Indexer[Resource]:
    indexer = Indexer[Resource](indexers={"node": lambda obj: [obj["spec"]["nodeName"]]})
    indexer.replace(objects.values())
    return indexer


def listing(known: dict[str, Resource], listed: dict[str, Resource]) -> WholeList[Resource]:
    deltas: dict[str, Delta[Resource]] = {
        obj.key: Delta(DeltaType.DELETED, DeletedFinalStateUnknown(obj.key, obj))
        for name, obj in known.items()
        if name not in listed
    }
    deltas |= {obj.key: Delta(DeltaType.REPLACED, obj) for obj in listed.values()}
    return whole_list(deltas.values(), [*deltas])


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


def test_an_index_added_while_it_is_filled_is_not_lost() -> None:
    objects = {"a": pod("a", 1, node="n1")}
    indexer = indexer_of({})
    work = ListProcessing(listing({}, objects), indexer, is_in_initial_list=True)
    for _ in work.fill():
        pass
    indexer.add_indexers({"name": lambda obj: [obj.name]})
    work.commit()
    assert indexer.index_keys("name", "a") == ["default/a"]
