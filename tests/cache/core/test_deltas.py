"""The queue of deltas: upstream's examples, and a machine against a naive model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import (
    DeletedFinalStateUnknown,
    Delta,
    DeltaQueue,
    Deltas,
    DeltaType,
    Popped,
    Unread,
    deletion_handling_key,
)
from deltaloop.cache.errors import FifoClosedError
from tests.cache.machines import run_machine
from tests.cache.objects import nameless, pod


class Known:
    """What the consumer holds."""

    def __init__(self, *objects: Resource) -> None:
        self.items = {obj.key: obj for obj in objects}

    def list_keys(self) -> list[str]:
        return [*self.items]

    def get_by_key(self, key: str) -> Resource | None:
        return self.items.get(key)


def drain(queue: DeltaQueue[Resource]) -> list[Popped[Resource]]:
    popped: list[Popped[Resource]] = []
    while (item := queue.pop()) is not None:
        popped.append(item)
    return popped


def short(popped: Popped[Resource]) -> list[tuple[str, str, bool]]:
    """Types, versions, and whether each is a tombstone."""
    found: list[tuple[str, str, bool]] = []
    for delta in popped.deltas:
        if isinstance(delta.object, DeletedFinalStateUnknown):
            found.append((delta.type.value, delta.object.obj.resource_version, True))
        else:
            found.append((delta.type.value, delta.object.resource_version, False))
    return found


def test_deltas_of_a_key_come_together_and_in_order() -> None:
    queue = DeltaQueue[Resource](known_objects=Known())
    queue.add(pod("a", 1))
    queue.update(pod("a", 2))
    queue.delete(pod("a", 3))
    (popped,) = drain(queue)
    assert popped.key == "default/a"
    assert short(popped) == [("Added", "1", False), ("Updated", "2", False), ("Deleted", "3", False)]


def test_key_keeps_its_queue_position() -> None:
    queue = DeltaQueue[Resource](known_objects=Known())
    for name in ("a", "b", "c"):
        queue.add(pod(name))
    queue.update(pod("a", 2))
    assert [popped.key for popped in drain(queue)] == ["default/a", "default/b", "default/c"]


def test_key_added_again_goes_to_end_of_queue() -> None:
    queue = DeltaQueue[Resource](known_objects=Known())
    for name in ("a", "b"):
        queue.add(pod(name))
    assert queue.pop() is not None
    queue.add(pod("c"))
    queue.add(pod("a", 2))
    assert queue.list_keys() == ["default/b", "default/c", "default/a"]


def test_consecutive_deletions_are_merged_with_known_state() -> None:
    known = Known(pod("a", 1))
    real, unknown = pod("a", 5), DeletedFinalStateUnknown("default/a", pod("a", 1))
    for first, second in ((real, unknown), (unknown, real), (real, pod("a", 6))):
        queue = DeltaQueue[Resource](known_objects=known)
        queue.delete(first)
        queue.delete(second)
        (popped,) = drain(queue)
        assert short(popped) == [("Deleted", "5", False)]


def test_only_consecutive_deletions_are_merged() -> None:
    queue = DeltaQueue[Resource](known_objects=Known(pod("a")))
    queue.delete(pod("a", 2))
    queue.add(pod("a", 3))
    queue.delete(pod("a", 4))
    (popped,) = drain(queue)
    assert [delta.type for delta in popped.deltas] == [DeltaType.DELETED, DeltaType.ADDED, DeltaType.DELETED]


def test_the_deletion_of_an_unknown_object_is_dropped() -> None:
    queue = DeltaQueue[Resource](known_objects=Known(pod("known")))
    queue.delete(pod("a"))
    assert len(queue) == 0
    queue.delete(pod("known"))
    queue.add(pod("b"))
    queue.delete(pod("b"))
    assert queue.list_keys() == ["default/known", "default/b"]


def test_without_known_objects_only_queued_objects_can_be_deleted() -> None:
    queue = DeltaQueue[Resource]()
    queue.delete(pod("a"))
    assert len(queue) == 0
    queue.add(pod("a"))
    queue.delete(pod("a", 2))
    assert [delta.type for delta in queue.deltas_of("default/a")] == [DeltaType.ADDED, DeltaType.DELETED]
    queue.resync()
    queue.replace([])
    assert len(queue.deltas_of("default/a")) == 2


def test_replace_adds_listed_objects_and_deletes_others() -> None:
    known = Known(pod("a", 5), pod("b", 5), pod("c", 5))
    queue = DeltaQueue[Resource](known_objects=known)
    queue.delete(pod("b", 6))
    queue.replace([pod("a", 7)])
    popped = {item.key: short(item) for item in drain(queue)}
    assert popped == {
        "default/a": [("Replaced", "7", False)],
        "default/b": [("Deleted", "6", False)],
        "default/c": [("Deleted", "5", True)],
    }


@pytest.mark.parametrize(
    ("before", "newest"),
    [
        pytest.param([("add", 1)], "1", id="added"),
        pytest.param([("add", 1), ("update", 2)], "2", id="updated"),
        pytest.param([("add", 1), ("replace", 3)], "3", id="replaced"),
    ],
)
def test_replace_deletes_queued_object_once_with_newest_state(before: list[tuple[str, int]], newest: str) -> None:
    queue = DeltaQueue[Resource](known_objects=Known())
    for verb, version in before:
        obj: Any = pod("a", version)
        getattr(queue, verb)([obj] if verb == "replace" else obj)
    queue.replace([])
    queue.replace([])
    (popped,) = drain(queue)
    assert short(popped)[-1] == ("Deleted", newest, True)
    assert [delta.type for delta in popped.deltas].count(DeltaType.DELETED) == 1


def test_deletion_uses_queued_state_before_known_state() -> None:
    queue = DeltaQueue[Resource](known_objects=Known(pod("a", 5)))
    queue.update(pod("a", 6))
    queue.replace([])
    (popped,) = drain(queue)
    assert short(popped) == [("Updated", "6", False), ("Deleted", "6", True)]


def test_queued_tombstone_is_not_wrapped_again() -> None:
    queue = DeltaQueue[Resource](known_objects=Known(pod("a", 5)))
    queue.replace([])
    queue.replace([])
    (popped,) = drain(queue)
    assert short(popped) == [("Deleted", "5", True)]


def test_replace_with_an_object_without_a_name_changes_nothing() -> None:
    queue = DeltaQueue[Resource](known_objects=Known(pod("a")))
    with pytest.raises(MalformedObjectError):
        queue.replace([pod("b"), nameless()])
    assert len(queue) == 0
    assert not queue.has_synced


def test_resync_queues_known_objects_without_queued_deltas() -> None:
    queue = DeltaQueue[Resource](known_objects=Known(pod("a", 5), pod("b", 5), pod("c", 5)))
    queue.update(pod("a", 6))
    queue.delete(pod("b", 6))
    queue.resync()
    assert [short(popped) for popped in drain(queue)] == [
        [("Updated", "6", False)],
        [("Deleted", "6", False)],
        [("Sync", "5", False)],
    ]


def _synced_after(*steps: Callable[[DeltaQueue[Resource]], object]) -> bool:
    queue = DeltaQueue[Resource](known_objects=Known(pod("known")))
    for each in steps:
        each(queue)
    return queue.has_synced


def replace_two(queue: DeltaQueue[Resource]) -> None:
    queue.replace([pod("known"), pod("b")])


def replace_none(queue: DeltaQueue[Resource]) -> None:
    queue.replace([])


def add(queue: DeltaQueue[Resource]) -> None:
    queue.add(pod("a"))


def delete(queue: DeltaQueue[Resource]) -> None:
    queue.delete(pod("unknown"))


def pop(queue: DeltaQueue[Resource]) -> None:
    queue.pop()


def test_has_synced() -> None:
    assert not _synced_after()
    assert _synced_after(add)
    assert _synced_after(delete)
    assert not _synced_after(replace_two)
    assert not _synced_after(replace_two, pop)
    assert _synced_after(replace_two, pop, pop)
    assert not _synced_after(replace_none)
    assert _synced_after(replace_none, pop)
    assert DeltaQueue[Resource]().has_synced is False
    empty = DeltaQueue[Resource](known_objects=Known())
    empty.replace([])
    assert empty.has_synced


def test_deltas_popped_before_sync_belong_to_initial_list() -> None:
    queue = DeltaQueue[Resource](known_objects=Known(pod("gone")))
    queue.replace([pod("a"), pod("b")])
    first = [item.is_in_initial_list for item in drain(queue)]
    queue.add(pod("c"))
    assert first == [True, True, True]
    assert [item.is_in_initial_list for item in drain(queue)] == [False]


def test_add_if_not_present_keeps_newer_deltas() -> None:
    queue = DeltaQueue[Resource](known_objects=Known())
    queue.add(pod("a", 1))
    popped = queue.pop()
    assert popped is not None
    queue.update(pod("a", 2))
    queue.add_if_not_present(popped.key, popped.deltas)
    assert [short(item) for item in drain(queue)] == [[("Updated", "2", False)]]
    queue.add_if_not_present(popped.key, popped.deltas)
    assert [short(item) for item in drain(queue)] == [[("Added", "1", False)]]


def test_queued_deltas_can_be_popped_after_close() -> None:
    queue = DeltaQueue[Resource]()
    queue.add(pod("a"))
    queue.close()
    assert queue.closed
    assert queue.pop() is not None
    with pytest.raises(FifoClosedError):
        queue.pop()


def test_key_of_tombstone_is_its_key_field() -> None:
    assert deletion_handling_key(DeletedFinalStateUnknown("x/y", pod("a"))) == "x/y"
    assert deletion_handling_key(pod("a")) == "default/a"


# A machine: the queue against a model that keeps plain lists, and a consumer that applies what it pops.

NAMES = st.sampled_from(["a", "b", "c"])


def make_machine(make: Callable[[Known], DeltaQueue[Resource]]) -> type[RuleBasedStateMachine]:
    """Build the machine around a queue, so that broken ones go through it, too."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.known = Known()
            self.queue = make(self.known)
            self.version = 0
            self.truth: dict[str, str] = {}
            self.waiting: list[str] = []
            self.initial: set[str] | None = None
            self.written = False
            self.told = 0
            self.before: dict[str, int] = {}

        def next(self, name: str) -> Resource:
            self.version += 1
            return pod(name, self.version)

        def wrote(self, *keys: str) -> None:
            self.written = True
            self.waits(*keys)
            self.told = self.version
            self.queue.update_resource_version(str(self.version) if self.version else "")

        def waits(self, *keys: str) -> None:
            for key in keys:
                if key not in self.waiting:
                    self.waiting.append(key)
                    self.before[key] = self.told

        @rule(name=NAMES)
        def put(self, name: str) -> None:
            obj = self.next(name)
            (self.queue.update if obj.key in self.truth else self.queue.add)(obj)
            self.truth[obj.key] = obj.resource_version
            self.wrote(obj.key)

        @rule(name=NAMES)
        def delete(self, name: str) -> None:
            obj = self.next(name)
            heard_of = obj.key in self.waiting or obj.key in self.known.items
            self.queue.delete(obj)
            self.truth.pop(obj.key, None)
            self.wrote(*([obj.key] if heard_of else []))

        @rule(names=st.sets(NAMES))
        def replace(self, names: set[str]) -> None:
            objects = [self.next(name) for name in sorted(names)]
            first = not self.written
            self.queue.replace(objects)
            self.truth = {obj.key: obj.resource_version for obj in objects}
            keys = [obj.key for obj in objects]
            gone = [key for key in self.waiting if key not in keys]
            gone += [key for key in self.known.items if key not in keys and key not in gone]
            self.wrote(*keys, *gone)
            if first:
                self.initial = {*keys, *gone}

        @rule()
        def resync(self) -> None:
            quiet = [key for key in self.known.items if key not in self.waiting]
            self.queue.resync()
            self.waits(*quiet)

        @precondition(lambda self: self.waiting)
        @rule(again=st.booleans())
        def pop(self, again: bool) -> None:
            synced = self.queue.has_synced
            popped = self.queue.pop()
            assert popped is not None
            assert popped.key == self.waiting.pop(0), "not first in line"
            assert popped.deltas
            assert popped.is_in_initial_list is not synced
            if self.initial is not None:
                self.initial.discard(popped.key)
            before = self.before.pop(popped.key)
            if again:
                self.queue.add_if_not_present(popped.key, popped.deltas)
                self.waiting.append(popped.key)
                self.before[popped.key] = before
            else:
                self.apply(popped.deltas)

        @precondition(lambda self: self.waiting)
        @rule(name=NAMES, came=st.booleans())
        def pop_and_be_interrupted(self, name: str, came: bool) -> None:
            initial = None if self.initial is None else {*self.initial}
            popped = self.queue.pop()
            assert popped is not None
            self.waiting.remove(popped.key)
            before = self.before.pop(popped.key)
            if came:
                self.put(name)
            self.queue.put_back(popped)
            self.waiting = [popped.key, *(key for key in self.waiting if key != popped.key)]
            self.before[popped.key] = before
            self.initial = initial

        def apply(self, deltas: Deltas[Resource]) -> None:
            for before, after in pairwise(deltas):
                assert (before.type, after.type) != (DeltaType.DELETED, DeltaType.DELETED)
                assert after.type is not DeltaType.SYNC, "a resync behind something newer"
            for delta in deltas:
                obj = delta.object
                if isinstance(obj, DeletedFinalStateUnknown):
                    assert obj.obj == self.known.items.get(obj.key), "a tombstone with an old state"
                    del self.known.items[obj.key]
                elif delta.type is DeltaType.DELETED:
                    self.known.items.pop(obj.key, None)
                else:
                    self.known.items[obj.key] = obj

        @invariant()
        def the_line_is_as_expected(self) -> None:
            assert self.queue.list_keys() == self.waiting
            assert len(self.queue) == len(self.waiting)
            assert all(self.queue.deltas_of(key) for key in self.waiting)

        @invariant()
        def its_version_promises_no_more_than_was_popped(self) -> None:
            reached = min(self.before.values(), default=self.told)
            assert self.queue.processed_version == (str(reached) if reached else "")

        @invariant()
        def synced_when_the_first_list_was_popped(self) -> None:
            assert self.queue.has_synced is (self.written and not self.initial)

        @invariant()
        def drained_it_equals_the_truth(self) -> None:
            if not self.waiting:
                assert {key: obj.resource_version for key, obj in self.known.items.items()} == self.truth

    return Machine


def test_the_queue_agrees_with_the_model() -> None:
    run_machine(make_machine(lambda known: DeltaQueue(known_objects=known)))


class Vanishing(Known):
    """Has lost an object since it told its keys."""

    def list_keys(self) -> list[str]:
        return ["default/lost", *super().list_keys()]


def test_object_that_vanishes_during_resync_is_skipped() -> None:
    queue = DeltaQueue[Resource](known_objects=Vanishing(pod("a", 1)))
    queue.resync()
    (popped,) = drain(queue)
    assert short(popped) == [("Sync", "1", False)]


def test_real_deletion_replaces_tombstone() -> None:
    queue = DeltaQueue[Resource](known_objects=Known())
    stand_in = DeletedFinalStateUnknown("default/a", pod("a", 1))
    assert queue.key_of(stand_in) == "default/a"
    queue.add(pod("a", 1))
    queue.delete(stand_in)
    assert queue.deltas_of("default/a")[-1] == Delta[Resource](DeltaType.DELETED, stand_in)
    queue.delete(pod("a", 2))
    (popped,) = drain(queue)
    assert short(popped) == [("Added", "1", False), ("Deleted", "2", False)]


def test_added_delta_syncs_new_queue() -> None:
    queue = DeltaQueue[Resource](known_objects=Known())
    queue.add_if_not_present("default/a", (Delta(DeltaType.ADDED, pod("a", 1)),))
    assert queue.has_synced
    assert [popped.key for popped in drain(queue)] == ["default/a"]


def test_unread_is_true_with_keys_or_any_flag() -> None:
    assert Unread(is_any=True)
    assert Unread(frozenset({"default/a"}))
    assert not Unread()


def test_processed_version_is_before_oldest_queued_key() -> None:
    queue: DeltaQueue[Resource] = DeltaQueue()
    for name, version in (("a", 5), ("b", 6)):
        queue.add(pod(name, version))
        assert not queue.update_resource_version(str(version))
    popped = queue.pop()
    assert popped is not None
    assert queue.processed_version == "5"
    queue.add_if_not_present(popped.key, popped.deltas)
    assert (queue.list_keys(), queue.processed_version) == (["default/b", "default/a"], "")
    queue.pop()
    assert queue.processed_version == ""
    queue.pop()
    assert queue.processed_version == "6"
    queue.add_if_not_present("default/c", ())
    assert len(queue) == 0
    assert queue.update_resource_version("7")


def test_requeued_deltas_keep_processed_version() -> None:
    queue: DeltaQueue[Resource] = DeltaQueue()
    queue.update_resource_version("5")
    queue.add_if_not_present("default/c", (Delta(DeltaType.ADDED, pod("c")),))
    queue.update_resource_version("6")
    assert queue.processed_version == "5"


def test_deleted_object_is_transformed_and_tombstone_is_not() -> None:
    queue: DeltaQueue[Resource] = DeltaQueue(
        known_objects=Known(pod("a", 1), pod("b", 1)), transform=lambda obj: pod(obj.name, 99)
    )
    queue.delete(pod("a", 2))
    queue.delete(DeletedFinalStateUnknown("default/b", pod("b", 1)))
    assert [short(popped) for popped in drain(queue)] == [[("Deleted", "99", False)], [("Deleted", "1", True)]]


@pytest.mark.parametrize(
    ("unread", "gone"), [(Unread(), 2), (Unread(frozenset({"default/a"})), 1), (Unread(is_any=True), 0)]
)
def test_unreadable_object_is_not_deleted_by_replace(unread: Unread, gone: int) -> None:
    queue: DeltaQueue[Resource] = DeltaQueue(known_objects=Known(pod("a", 1), pod("b", 1)))
    queue.replace([], unread=unread)
    assert len(drain(queue)) == gone
