"""Buffers: what a handler is told is always (add update* delete)*, and the newest state is never lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deltaloop.api.resource import Resource
from deltaloop.cache.core.notification_buffer import (
    BufferPolicy,
    CoalescingBuffer,
    FifoBuffer,
    SingleFileTracker,
    key_of,
    make_buffer,
)
from deltaloop.cache.core.process_deltas import (
    AddNotification,
    DeleteNotification,
    Notification,
    UpdateNotification,
)
from tests.cache.machines import run_machine
from tests.cache.objects import pod

if TYPE_CHECKING:
    from deltaloop.cache.core.notification_buffer import NotificationBuffer

A1, A2, A3, A4, B1 = pod("a", 1), pod("a", 2), pod("a", 3), pod("a", 4), pod("b", 1)


def put_all(
    buffer: NotificationBuffer[Resource], *notifications: Notification[Resource]
) -> list[tuple[Notification[Resource], bool]]:
    counts = [buffer.put_all([notification]) for notification in notifications]
    assert min(counts, default=0) >= 0
    lost = sum(counts)
    taken: list[tuple[Notification[Resource], bool]] = []
    while len(buffer):
        notification = buffer.popleft()
        taken.append((notification, notification.is_in_initial_list))
    initial = sum(isinstance(each, AddNotification) and each.is_in_initial_list for each in notifications)
    assert lost + sum(is_initial for _, is_initial in taken) == initial, "every item of the initial list is counted out"
    return taken


@pytest.mark.parametrize(
    ("waits", "comes", "becomes"),
    [
        (AddNotification(A1), UpdateNotification(A1, A2), AddNotification(A2)),
        (AddNotification(A1, True), UpdateNotification(A1, A2), AddNotification(A2, True)),
        (AddNotification(A1), DeleteNotification(A2), None),
        (AddNotification(A1, True), DeleteNotification(A2), None),
        (UpdateNotification(A1, A2), UpdateNotification(A2, A3), UpdateNotification(A1, A3)),
        (UpdateNotification(A1, A2), DeleteNotification(A3), DeleteNotification(A3)),
        (DeleteNotification(A1), AddNotification(A2), UpdateNotification(A1, A2)),
        (DeleteNotification(A1), AddNotification(A2, True), UpdateNotification(A1, A2, is_in_initial_list=True)),
        (DeleteNotification(A1), UpdateNotification(A1, A2), UpdateNotification(A1, A2)),
        (DeleteNotification(A1), DeleteNotification(A2, False), DeleteNotification(A2, False)),
        (AddNotification(A1, True), AddNotification(A2, True), AddNotification(A2, True)),
    ],
)
def test_pending_notification_is_merged_with_the_next(
    waits: Notification[Resource], comes: Notification[Resource], becomes: Notification[Resource] | None
) -> None:
    taken = [notification for notification, _ in put_all(CoalescingBuffer[Resource](), waits, comes)]
    assert taken == ([] if becomes is None else [becomes])


def test_new_object_after_deletion_is_update_of_last_delivered_state() -> None:
    changes = UpdateNotification(A1, A2), DeleteNotification(A2), AddNotification(A3)
    (taken,) = put_all(CoalescingBuffer[Resource](), *changes)
    assert taken[0] == UpdateNotification(A1, A3)
    (taken,) = put_all(CoalescingBuffer[Resource](), *changes, DeleteNotification(A3), AddNotification(A2))
    assert taken[0] == UpdateNotification(A1, A2)


def test_merged_resync_keeps_identical_old_and_new() -> None:
    (taken,) = put_all(CoalescingBuffer[Resource](), UpdateNotification(A1, A1), UpdateNotification(A1, A1))
    notification = taken[0]
    assert isinstance(notification, UpdateNotification)
    assert notification.old is notification.new


@pytest.mark.parametrize("waits", [DeleteNotification(A1), AddNotification(A1, True)])
def test_merged_item_of_initial_list_keeps_flag(waits: Notification[Resource]) -> None:
    (taken,) = put_all(CoalescingBuffer[Resource](), waits, AddNotification(A2, True), UpdateNotification(A2, A3))
    assert taken[1], "it is counted out when it is delivered"


def test_changes_after_recreation_are_merged_with_last_delivered_state() -> None:
    changes = UpdateNotification(A1, A2), DeleteNotification(A2), AddNotification(A3), UpdateNotification(A3, A4)
    assert put_all(CoalescingBuffer[Resource](), *changes) == [(UpdateNotification(A1, A4), False)]


@pytest.mark.parametrize("policy", list(BufferPolicy))
def test_putting_several_equals_putting_one_by_one(policy: BufferPolicy) -> None:
    several: list[Notification[Resource]] = [
        AddNotification(A1, True),
        AddNotification(B1, True),
        DeleteNotification(A2),
    ]
    lost = 1 if policy is BufferPolicy.COALESCING else 0
    one, other = make_buffer(policy, 2), make_buffer(policy, 2)
    assert one.put_all(several) == sum(other.put_all([each]) for each in several) == lost
    assert (len(one), one.room) == (len(other), 0)
    assert [one.popleft() for _ in range(len(one))] == [other.popleft() for _ in range(len(other))]


def test_keys_keep_their_place_in_line() -> None:
    buffer = CoalescingBuffer[Resource]()
    taken = put_all(buffer, AddNotification(A1), AddNotification(B1), UpdateNotification(A1, A2))
    assert [key_of(notification) for notification, _ in taken] == ["default/a", "default/b"]


def test_bounded_buffer_reports_full_and_accepts_more() -> None:
    buffer = FifoBuffer[Resource](2)
    assert not buffer.is_full
    assert (buffer.room, FifoBuffer[Resource]().room) == (2, 0)
    buffer.put_all([AddNotification(A1)])
    buffer.put_all([UpdateNotification(A1, A2)])
    assert buffer.is_full
    assert buffer.room == 0
    buffer.put_all([UpdateNotification(A2, A3)])
    assert (len(buffer), buffer.keys()) == (3, {"default/a"})
    buffer.popleft()
    assert buffer.is_full
    buffer.popleft()
    assert not buffer.is_full
    buffer.clear()
    assert len(buffer) == 0


def test_each_policy_has_its_buffer() -> None:
    kinds: dict[BufferPolicy, NotificationBuffer[Resource]] = {
        policy: make_buffer(policy, 1) for policy in BufferPolicy
    }
    for buffer in kinds.values():
        buffer.put_all([AddNotification(A1)])
        buffer.put_all([AddNotification(B1)])
    assert {policy for policy, buffer in kinds.items() if buffer.is_full} == {BufferPolicy.BOUNDED}
    for buffer in kinds.values():
        assert buffer.keys() == {"default/a", "default/b"}
        buffer.clear()
        assert len(buffer) == 0


NAMES = st.sampled_from(["a", "b", "c"])


def make_machine(make: Callable[[], NotificationBuffer[Resource]]) -> type[RuleBasedStateMachine]:
    """A store that tells every change, the buffer, and a handler with a picture of its own."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.buffer = make()
            self.store: dict[str, Resource] = {}
            self.picture: dict[str, Resource] = {}
            self.version = 0
            self.initial = 0

        @rule(name=NAMES, initial=st.booleans())
        def put(self, name: str, initial: bool) -> None:
            self.version += 1
            old, new = self.store.get(name), pod(name, self.version)
            self.store[name] = new
            self.initial += old is None and initial
            self.tell(AddNotification(new, initial) if old is None else UpdateNotification(old, new))

        @rule(name=NAMES)
        def resync(self, name: str) -> None:
            if (obj := self.store.get(name)) is not None:
                self.tell(UpdateNotification(obj, obj))

        @rule(name=NAMES, known=st.booleans())
        def delete(self, name: str, known: bool) -> None:
            if (obj := self.store.pop(name, None)) is not None:
                self.tell(DeleteNotification(obj, known))

        def tell(self, notification: Notification[Resource]) -> None:
            self.initial -= self.buffer.put_all([notification])

        @rule()
        def take(self) -> None:
            if not len(self.buffer):
                return
            notification = self.buffer.popleft()
            self.initial -= notification.is_in_initial_list
            match notification:
                case AddNotification(obj):
                    assert obj.name not in self.picture, "added twice"
                    self.picture[obj.name] = obj
                case UpdateNotification(old, new):
                    assert self.picture.get(new.name) is old, "updated from what was never told"
                    self.picture[new.name] = new
                case DeleteNotification(obj):
                    assert self.picture.pop(obj.name, None) is not None, "deleted before it was added"

        @invariant()
        def what_waits_is_known_by_key(self) -> None:
            waiting = self.buffer.keys()
            for name in {*self.store, *self.picture}:
                if f"default/{name}" not in waiting:
                    assert self.store.get(name) is self.picture.get(name), "the newest state is lost"
            assert self.initial >= 0

        def teardown(self) -> None:
            while len(self.buffer):
                self.take()
            assert self.picture == self.store
            assert self.initial == 0, "an item of the initial list was never counted out"

    return Machine


@pytest.mark.parametrize("policy", [BufferPolicy.UNBOUNDED, BufferPolicy.COALESCING])
def test_buffered_notifications_are_always_possible(policy: BufferPolicy) -> None:
    run_machine(make_machine(lambda: make_buffer(policy, 3)))


def test_second_deletion_after_pending_update_is_one_deletion() -> None:
    taken = put_all(
        CoalescingBuffer[Resource](), UpdateNotification(A1, A2), DeleteNotification(A3), DeleteNotification(A3, False)
    )
    assert taken == [(DeleteNotification(A3, False), False)]


def test_synced_means_handed_out_and_delivered() -> None:
    done = [False]
    tracker = SingleFileTracker(lambda: done[0])
    assert not tracker.has_synced
    tracker.start()
    tracker.start()
    done[0] = True
    assert not tracker.has_synced
    tracker.finished()
    assert not tracker.has_synced
    tracker.finished()
    assert tracker.has_synced


def test_tracker_is_not_synced_while_source_is_not() -> None:
    tracker = SingleFileTracker(lambda: False)
    tracker.start()
    tracker.finished()
    assert not tracker.has_synced


def test_finishing_without_start_raises_error() -> None:
    with pytest.raises(RuntimeError):
        SingleFileTracker(lambda: True).finished()
