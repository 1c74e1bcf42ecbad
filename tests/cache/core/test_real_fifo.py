"""The in-order queue: strict order, lists in one step, batches of different keys; a model keeps a plain list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Deltas, DeltaType, Unread, WholeList, is_keyed
from deltaloop.cache.core.real_fifo import TURN, Batch, InOrderQueue
from deltaloop.cache.errors import FifoClosedError, TransformError
from tests.cache.core.test_deltas import Known, Vanishing
from tests.cache.machines import run_machine
from tests.cache.objects import pod


def short(deltas: Deltas[Resource]) -> list[str]:
    found: list[str] = []
    for delta in deltas:
        obj = delta.object
        if isinstance(obj, DeletedFinalStateUnknown):
            found.append(f"{delta.type}? {obj.obj.name}@{obj.obj.resource_version}")
        else:
            found.append(f"{delta.type} {obj.name}@{obj.resource_version}")
    return found


def pop(queue: InOrderQueue[Resource], limit: int = 10) -> Batch[Resource]:
    batch = queue.pop(limit)
    assert batch is not None
    return batch


def drain(queue: InOrderQueue[Resource]) -> list[list[str]]:
    found: list[list[str]] = []
    while (batch := queue.pop()) is not None:
        queue.processed(batch)
        found.append(short(batch.deltas))
    return found


def test_every_state_is_popped_in_order_in_batches_of_different_keys() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.add(pod("a", 1))
    queue.add(pod("b", 2))
    queue.update(pod("a", 3))
    queue.delete(pod("never heard of", 4))
    queue.delete(DeletedFinalStateUnknown("default/b", pod("b", 2)))
    assert queue.list_keys() == ["default/a", "default/b", "default/never heard of"]
    assert drain(queue) == [
        ["Added a@1", "Added b@2"],
        ["Updated a@3", "Deleted never heard of@4", "Deleted? b@2"],
    ]
    assert queue.pop() is None


def test_list_is_one_batch_with_deletions_first() -> None:
    queue = InOrderQueue(known_objects=Known(pod("gone", 1), pod("kept", 1)))
    queue.replace([pod("new", 5), pod("kept", 5)])
    queue.add(pod("later", 6))
    assert drain(queue) == [["Deleted? gone@1", "Replaced new@5", "Replaced kept@5"], ["Added later@6"]]


def test_deletions_of_list_are_determined_when_popped() -> None:
    known = Known()
    queue = InOrderQueue(known_objects=known)
    queue.add(pod("a", 1))
    queue.replace([])
    queue.processed(pop(queue))
    known.items["default/a"] = pod("a", 1)
    assert drain(queue) == [["Deleted? a@1"]]


def test_resync_uses_objects_known_when_popped() -> None:
    known = Known()
    queue = InOrderQueue(known_objects=known)
    queue.resync()
    assert len(queue) == 0, "there is nothing yet"
    queue.add(pod("a", 1))
    queue.resync()
    queue.processed(pop(queue))
    known.items["default/a"] = pod("a", 1)
    assert drain(queue) == [["Sync a@1"]]


def test_batches_are_limited_and_lists_are_separate() -> None:
    queue = InOrderQueue(known_objects=Known(), batch_size=2)
    for name in "abc":
        queue.add(pod(name))
    queue.replace([pod(name) for name in "abc"])
    queue.add(pod("d"))
    assert [len(batch) for batch in drain(queue)] == [2, 1, 3, 1]


def test_queue_is_synced_after_first_list_is_processed() -> None:
    queue = InOrderQueue(known_objects=Known())
    assert not queue.has_synced
    queue.replace([])
    assert not queue.has_synced
    queue.add(pod("a"))
    first = pop(queue)
    assert (first.deltas, first.is_in_initial_list, queue.has_synced) == ((), True, False)
    queue.processed(first)
    assert queue.has_synced
    assert not pop(queue).is_in_initial_list


def test_any_other_write_first_means_synced() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.add(pod("a"))
    assert queue.has_synced
    queue.replace([pod("a")])
    assert queue.has_synced
    assert not pop(queue).is_in_initial_list


def test_returned_batch_comes_first_again() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.replace([pod("a", 1)])
    queue.add(pod("b", 2))
    queue.update(pod("b", 3))
    queue.put_back(pop(queue))
    assert not queue.has_synced
    assert drain(queue) == [["Replaced a@1"], ["Added b@2"], ["Updated b@3"]]
    queue.add(pod("a", 4))
    queue.add(pod("b", 5))
    queue.put_back(pop(queue))
    assert drain(queue) == [["Added a@4", "Added b@5"]]


def test_processed_version_follows_processed_batches() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.replace([pod("a")])
    queue.update_resource_version("10")
    assert queue.processed_version == ""
    queue.processed(pop(queue))
    assert queue.processed_version == "10"
    assert queue.update_resource_version("11")
    assert queue.processed_version == "11", "a bookmark when nothing waits"
    queue.add(pod("a"))
    assert not queue.update_resource_version("11"), "something waits"
    batch = pop(queue)
    assert not queue.update_resource_version("12"), "something is being processed"
    assert queue.processed_version == "11"
    queue.processed(batch)
    assert queue.processed_version == "12"


def test_version_is_assigned_to_last_queued_write() -> None:
    queue = InOrderQueue(known_objects=Known())
    assert (queue.is_idle, queue.update_resource_version("4"), queue.processed_version) == (True, True, "4")
    queue.add(pod("a", 5))
    queue.add(pod("b", 6))
    queue.update_resource_version("6")
    queue.processed(pop(queue, 1))
    assert (queue.is_idle, queue.processed_version) == (False, "4")
    batch = pop(queue, 1)
    assert not queue.is_idle
    queue.processed(batch)
    assert (queue.is_idle, queue.processed_version) == (True, "6")


def test_several_changes_first_mean_synced() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.write_all([])
    assert not queue.has_synced
    queue.write_all([(DeltaType.ADDED, pod("a", 5), "5")])
    assert queue.has_synced
    queue.replace([pod("a")])
    assert queue.has_synced


def test_lists_and_resyncs_have_no_keys() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.replace([pod("a")])
    queue.resync()
    assert (queue.list_keys(), len(queue)) == ([], 2)


def test_batch_has_at_most_thousand_entries() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.write_all([(DeltaType.ADDED, pod(f"p{number}"), "") for number in range(1001)])
    assert [len(batch) for batch in drain(queue)] == [1000, 1]


def test_deleted_object_is_transformed_and_tombstone_is_not() -> None:
    queue = InOrderQueue(
        known_objects=Known(),
        key_func=lambda obj: f"key of {obj.name}",
        transform=lambda obj: pod(obj.name, 99),
    )
    stand_in = DeletedFinalStateUnknown("gone", pod("gone", 1))
    queue.delete(pod("a", 1))
    queue.delete(stand_in)
    assert queue.list_keys() == ["key of a", "gone"]
    assert (queue.key_of(stand_in), queue.key_of(pod("a"))) == ("gone", "key of a")
    assert drain(queue) == [["Deleted a@99", "Deleted? gone@1"]]


def test_a_batch_with_several_versions_reaches_the_last_one() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.write_all([(DeltaType.ADDED, pod("a", 5), "5"), (DeltaType.ADDED, pod("b", 7), "7")])
    queue.write_all([(DeltaType.ADDED, pod("c", 8), "")])
    queue.processed(pop(queue))
    assert queue.processed_version == "7"


def test_version_set_during_batch_waits_for_later_writes() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.write_all([(DeltaType.ADDED, pod("a", 5), "5")])
    batch = pop(queue)
    queue.write_all([(DeltaType.UPDATED, pod("a", 7), "7")])
    assert not queue.update_resource_version("9")
    queue.processed(batch)
    assert queue.processed_version == "5"
    queue.processed(pop(queue))
    assert queue.processed_version == "9"


def test_failing_transform_rejects_complete_list() -> None:
    def picky(obj: Resource) -> Resource:
        if obj.name == "b":
            raise ValueError("no")
        return obj

    queue = InOrderQueue(known_objects=Known(), transform=picky)
    writes: list[Callable[[], None]] = [lambda: queue.replace([pod("a"), pod("b")]), lambda: queue.add(pod("b"))]
    for write in writes:
        with pytest.raises(TransformError):
            write()
    assert len(queue) == 0


def test_closed_queue_can_be_emptied() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.add(pod("a"))
    queue.close()
    assert queue.closed
    queue.processed(pop(queue))
    with pytest.raises(FifoClosedError):
        queue.pop()


# A machine

NAMES = st.sampled_from(["a", "b", "c"])
WATCHED = [DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED]


def make_machine(make: Callable[[Known], InOrderQueue[Resource]]) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.known = Known()
            self.queue = make(self.known)
            self.version = 0
            self.line: list[tuple[str, Any]] = []
            self.initial = 0
            self.written = False

        def next(self, name: str) -> Resource:
            self.version += 1
            return pod(name, self.version)

        def wrote(self, kind: str, what: Any) -> None:
            self.line.append((kind, what))
            if kind == "list" and not self.written:
                self.initial = len(self.line)
            self.written = True
            self.queue.update_resource_version(str(self.version))

        @rule(name=NAMES, kind=st.sampled_from(["add", "update", "delete"]))
        def write(self, name: str, kind: str) -> None:
            obj = self.next(name)
            getattr(self.queue, kind)(obj)
            self.wrote("delete" if kind == "delete" else "put", obj)

        @rule(changes=st.lists(st.tuples(NAMES, st.sampled_from(WATCHED))))
        def write_all(self, changes: list[tuple[str, DeltaType]]) -> None:
            made = [(delta_type, self.next(name)) for name, delta_type in changes]
            self.queue.write_all((delta_type, obj, obj.resource_version) for delta_type, obj in made)
            for delta_type, obj in made:
                self.line.append(("delete" if delta_type is DeltaType.DELETED else "put", obj))
            self.written = self.written or bool(made)

        @rule(names=st.lists(NAMES, unique=True))
        def replace(self, names: list[str]) -> None:
            objects = [self.next(name) for name in names]
            self.queue.replace(objects)
            self.wrote("list", objects)

        @rule()
        def resync(self) -> None:
            self.queue.resync()
            if self.written:
                self.line.append(("resync", None))

        @precondition(lambda self: self.line)
        @rule()
        def pop_and_fail(self) -> None:
            self.queue.put_back(pop(self.queue))

        @precondition(lambda self: self.line)
        @rule(limit=st.integers(0, 10))
        def pop(self, limit: int) -> None:
            synced = self.queue.has_synced
            batch = pop(self.queue, limit)
            assert batch.is_in_initial_list is not synced
            kind, what = self.line.pop(0)
            assert isinstance(batch.deltas, WholeList) is (kind == "list"), "a list is told by its type"
            if kind in {"list", "resync"}:
                self.initial = max(0, self.initial - 1)
                self.check_whole(kind, what, batch.deltas)
            else:
                keys = {what.key}
                expected = [(kind, what)]
                while len(keys) < limit and self.line and self.line[0][0] != "list" and self.line[0][0] != "resync":
                    if self.line[0][1].key in keys:
                        break
                    keys.add(self.line[0][1].key)
                    expected.append(self.line.pop(0))
                got = [("delete" if delta.type is DeltaType.DELETED else "put", delta.object) for delta in batch.deltas]
                assert got == expected, "not what came, in the order it came"
                assert is_keyed(batch.deltas)
                assert batch.deltas.keys == [delta.object.key for delta in batch.deltas]
            self.apply(batch.deltas)
            self.queue.processed(batch)

        def check_whole(self, kind: str, what: list[Resource], deltas: Deltas[Resource]) -> None:
            if kind == "resync":
                assert {delta.object for delta in deltas} == set(self.known.items.values())
                return
            listed = [delta.object for delta in deltas if delta.type is DeltaType.REPLACED]
            assert listed == what
            gone = [delta.object for delta in deltas if delta.type is DeltaType.DELETED]
            keys = {obj.key for obj in what}
            assert {(each.key, each.obj) for each in gone if isinstance(each, DeletedFinalStateUnknown)} == {
                (key, obj) for key, obj in self.known.items.items() if key not in keys
            }

        def apply(self, deltas: Deltas[Resource]) -> None:
            for delta in deltas:
                if delta.type is DeltaType.DELETED:
                    self.known.items.pop(delta.object.key, None)
                elif not isinstance(delta.object, DeletedFinalStateUnknown):
                    self.known.items[delta.object.key] = delta.object

        @invariant()
        def it_waits_for_what_came(self) -> None:
            assert len(self.queue) == len(self.line)
            assert self.queue.has_synced is (self.written and self.initial == 0)

        @invariant()
        def drained_its_version_is_the_last(self) -> None:
            if not self.line and self.written:
                assert self.queue.processed_version == str(self.version)

        def teardown(self) -> None:
            while self.line:
                self.pop(10)

    return Machine


def test_writes_of_one_call_have_separate_versions() -> None:
    def picky(obj: Resource) -> Resource:
        if obj.name == "bad":
            raise ValueError("no")
        return obj

    queue = InOrderQueue(known_objects=Known(), transform=picky)
    names = ["a", "b", "bad", "c"]
    with pytest.raises(TransformError):
        queue.write_all((DeltaType.ADDED, pod(name), str(place)) for place, name in enumerate(names, 1))
    assert queue.list_keys() == ["default/a", "default/b"], "what is before it is written"
    versions: list[str] = []
    while (batch := queue.pop(1)) is not None:
        queue.processed(batch)
        versions.append(queue.processed_version)
    assert versions == ["1", "2"]
    queue.write_all([(DeltaType.UPDATED, pod("a"), "")])
    queue.processed(pop(queue))
    assert queue.processed_version == "2", "one without a version brings it no further"


def test_the_queue_agrees_with_the_model() -> None:
    run_machine(make_machine(lambda known: InOrderQueue(known_objects=known)))


def test_batch_ends_before_second_delta_of_same_key() -> None:
    queue = InOrderQueue(known_objects=Known())
    for obj in (pod("a", 1), pod("b", 2), pod("b", 3)):
        queue.update(obj)
    assert drain(queue) == [["Updated a@1", "Updated b@2"], ["Updated b@3"]]


def test_version_set_during_last_batch_is_reached_after_it() -> None:
    queue = InOrderQueue(known_objects=Known())
    queue.add(pod("a", 1))
    queue.add(pod("b", 2))
    queue.update_resource_version("5")
    batch = pop(queue)
    assert not queue.update_resource_version("6")
    queue.processed(batch)
    assert queue.processed_version == "6"


def test_object_that_vanishes_during_resync_is_skipped() -> None:
    queue = InOrderQueue(known_objects=Vanishing(pod("a", 1)))
    queue.replace([], unread=Unread(is_any=True))
    queue.resync()
    assert drain(queue) == [["Replaced a@1"], ["Sync a@1"]]


def test_tombstone_has_key_and_is_not_in_initial_list() -> None:
    queue = InOrderQueue(known_objects=Known())
    stand_in = DeletedFinalStateUnknown("default/a", pod("a", 1))
    assert (queue.key_of(stand_in), queue.key_of(pod("b"))) == ("default/a", "default/b")
    queue.delete(stand_in)
    assert not pop(queue).is_in_initial_list


@pytest.mark.parametrize(("size", "turns"), [(TURN - 1, 0), (TURN, 1), (2 * TURN + 1, 2)])
def test_list_is_prepared_in_several_steps(size: int, turns: int) -> None:
    queue = InOrderQueue(known_objects=Known())
    steps = [*queue.prepare(pod(f"p{number}") for number in range(size))]
    assert steps[:-1] == [None] * turns
    assert steps[-1] is not None
    assert len(steps[-1].deltas) == size
