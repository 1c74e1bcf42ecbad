"""What a watcher sees, by examples and against a naive model: the difference of two filtered snapshots."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from deltaloop.api.status import ApiError, InternalServerError
from deltaloop.api.watch_event import EventType
from deltaloop.apiserver.core.storage.selection import EVERYTHING, Selection
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.storage.watching import (
    ChangeReader,
    Sighting,
    Watcher,
    WatchPlan,
    plan_watch,
    watch_seconds,
)
from deltaloop.apiserver.core.wire.requests import ListQuery
from tests.nightly import examples

BLUE = Selection.parse("color=blue", "")


def put(store: RevisionStore, name: str, color: str = "blue", value: int = 0) -> None:
    fields = {"metadata": {"name": name, "labels": {"color": color}}, "value": value}
    if store.get("r", name) is None:
        store.create("r", name, fields)
    else:
        store.update("r", name, fields)


def watcher(store: RevisionStore, *, now: float = 0.0, seconds: float = 1000.0, **plan: Any) -> Watcher:
    return Watcher(store, WatchPlan(resource="r", **plan), now=now, seconds=seconds)


def shown(sightings: tuple[Sighting, ...]) -> list[tuple[str, str, int]]:
    return [
        (item.type or "ERROR", item.object.name if item.object is not None else "", item.revision) for item in sightings
    ]


def test_initial_events_then_changes() -> None:
    store = RevisionStore()
    put(store, "b")
    put(store, "a")
    watch = watcher(store)
    put(store, "c")  # before the first poll: part of the state
    assert shown(watch.poll(0)) == [("ADDED", "a", 4), ("ADDED", "b", 4), ("ADDED", "c", 4)]
    assert watch.poll(0) == ()
    put(store, "a", value=1)
    store.delete("r", "b")
    assert shown(watch.poll(0)) == [("MODIFIED", "a", 5), ("DELETED", "b", 6)]


def test_deleted_event_has_the_revision_of_the_deletion() -> None:
    store = RevisionStore()
    put(store, "a", value=7)
    watch = watcher(store, revision=2, initial_events=False)
    store.delete("r", "a")
    (last,) = watch.poll(0)
    assert last.object is not None
    assert (last.object.resource_version, last.object["value"]) == ("3", 7)


def test_initial_events_come_in_portions_with_one_end_bookmark() -> None:
    store = RevisionStore()
    for name in "abc":
        put(store, name)
    watch = watcher(store, announce_end=True, bookmarks=True)
    assert [name for _, name, _ in shown(watch.poll(0, limit=2))] == ["a", "b"]
    last, end = watch.poll(0, limit=2)
    assert last.type is EventType.ADDED
    assert (end.type, end.ends_initial_events, end.revision) == (EventType.BOOKMARK, True, 4)
    assert watch.poll(0) == ()


def test_changes_of_other_resources_move_the_cursor() -> None:
    store = RevisionStore()
    watch = watcher(store, revision=1, initial_events=False)
    store.create("other", "x", {"metadata": {"name": "x"}})
    assert watch.poll(0) == ()
    assert watch.cursor == store.revision == 2
    store.compact(2)
    put(store, "a")
    assert shown(watch.poll(0)) == [("ADDED", "a", 3)]


def test_cursor_outside_the_window_is_expired() -> None:
    store = RevisionStore(window=2)
    watch = watcher(store, revision=1, initial_events=False)
    for name in "abc":
        put(store, name)
    (error,) = watch.poll(0)
    assert error.status is not None
    assert (error.status.code, error.status.message) == (410, "too old resource version: 1 (2)")
    assert watch.ended
    assert watch.poll(0) == ()


def test_deadline_ends_the_watch_without_an_event() -> None:
    store = RevisionStore()
    watch = watcher(store, seconds=10, revision=1, initial_events=False)
    assert watch.next_due() == 10
    put(store, "a")
    assert watch.poll(10) == ()
    assert watch.ended


def test_bookmarks_every_minute_and_two_seconds_before_the_end() -> None:
    store = RevisionStore()
    watch = watcher(store, seconds=130, revision=1, initial_events=False, bookmarks=True)
    assert watch.next_due() == 60
    assert watch.poll(59) == ()
    assert shown(watch.poll(60)) == [("BOOKMARK", "", 1)]
    assert watch.next_due() == 120
    assert shown(watch.poll(120)) == [("BOOKMARK", "", 1)]
    assert watch.next_due() == 128
    assert shown(watch.poll(128)) == [("BOOKMARK", "", 1)]
    assert watch.next_due() == 130


def test_future_revision_gets_no_bookmark() -> None:
    watch = watcher(RevisionStore(), revision=9, initial_events=False, bookmarks=True)
    assert watch.poll(60) == ()
    assert watch.next_due() == 120


def test_initial_events_wait_for_a_future_revision() -> None:
    store = RevisionStore()
    watch = watcher(store, revision=2)
    assert watch.poll(0) == ()
    assert watch.next_due() == 3
    put(store, "a")
    assert shown(watch.poll(2)) == [("ADDED", "a", 2)]
    late = watcher(store, revision=9)
    assert late.poll(2.9) == ()
    (error,) = late.poll(3)
    assert error.status is not None
    assert error.status.code == 504


def test_plans() -> None:
    def plan(**query: Any) -> WatchPlan:
        return plan_watch(ListQuery(**query), resource="r", prefix="", selection=EVERYTHING)

    assert plan().initial_events
    assert not plan().announce_end
    assert plan(allow_watch_bookmarks=True, resource_version="0").announce_end
    assert not plan(resource_version="5").initial_events
    assert plan(resource_version="5", send_initial_events=True).initial_events
    assert not plan(send_initial_events=False).initial_events
    with pytest.raises(ApiError) as caught:
        plan(resource_version="x")
    assert isinstance(caught.value, InternalServerError)
    assert watch_seconds(ListQuery(timeout_seconds=5), random=0.5) == 5
    assert watch_seconds(ListQuery(), random=0.5) == 2700
    assert watch_seconds(ListQuery(timeout_seconds=0), random=0.0) == 1800


def together(store: RevisionStore, reader: ChangeReader, *, now: float = 0.0, **plan: Any) -> Watcher:
    wanted: dict[str, Any] = {"resource": "r", "revision": 1, "initial_events": False, **plan}
    return Watcher(store, WatchPlan(**wanted), now=now, seconds=1000, changes=reader)


def test_watchers_at_the_same_revision_share_events() -> None:
    store = RevisionStore()
    reader = ChangeReader(store)
    first, second = together(store, reader), together(store, reader)
    put(store, "a")
    store.delete("r", "a")
    seen = first.poll(0)
    assert shown(seen) == [("ADDED", "a", 2), ("DELETED", "a", 3)]
    assert second.poll(0) is seen
    assert (first.cursor, second.cursor) == (3, 3)
    put(store, "b")
    assert shown(first.poll(0)) == [("ADDED", "b", 4)]
    # Further behind: a place of its own.
    assert shown(together(store, reader).poll(0)) == [("ADDED", "a", 2), ("DELETED", "a", 3), ("ADDED", "b", 4)]
    assert shown(second.poll(0)) == [("ADDED", "b", 4)]


def test_watchers_with_different_selections_do_not_share_events() -> None:
    store = RevisionStore()
    reader = ChangeReader(store)
    put(store, "a", color="red")
    put(store, "b")
    store.create("other", "b", {"metadata": {"name": "o"}})
    assert shown(together(store, reader).poll(0)) == [("ADDED", "a", 2), ("ADDED", "b", 3)]
    assert shown(together(store, reader, selection=BLUE).poll(0)) == [("ADDED", "b", 3)]
    assert shown(together(store, reader, prefix="a").poll(0)) == [("ADDED", "a", 2)]
    assert shown(together(store, reader).poll(0, limit=1)) == [("ADDED", "a", 2)]
    plan = WatchPlan(resource="other", revision=1, initial_events=False)
    other = Watcher(store, plan, now=0, seconds=9, changes=reader)
    assert shown(other.poll(0)) == [("ADDED", "o", 4)]


def test_shared_events_are_dropped_when_the_store_is_compacted() -> None:
    store = RevisionStore()
    reader = ChangeReader(store)
    put(store, "a")
    assert shown(together(store, reader).poll(0)) == [("ADDED", "a", 2)]
    store.compact(2)
    (error,) = together(store, reader).poll(0)
    assert error.status is not None
    assert error.status.code == 410
    # The same numbers once more, of other changes.
    again = RevisionStore()
    reader = ChangeReader(again)
    for value in range(3):
        put(again, "a", value=value)
    late = together(again, reader, revision=3)
    assert shown(late.poll(0)) == [("MODIFIED", "a", 4)]
    again.renumber(revision=2)
    put(again, "b")
    assert again.revision == 4
    assert shown(together(again, reader, revision=3).poll(0)) == [("ADDED", "b", 4)]
    # And once more, with the same oldest revision, too.
    again.renumber(revision=1)
    put(again, "c")
    assert (again.revision, again.compacted) == (4, 3)
    assert shown(together(again, reader, revision=3).poll(0)) == [("ADDED", "c", 4)]


def test_number_of_shared_positions_is_bounded() -> None:
    store = RevisionStore()
    reader = ChangeReader(store)
    for value in range(300):
        put(store, "a", value=value)
    for revision in range(1, 301):
        assert together(store, reader, revision=revision).poll(0)[0].revision == revision + 1
    assert len(reader._read) <= 16


class WatchMachine(RuleBasedStateMachine):
    """Watchers that read together, polled at any time in any portions; each must rebuild its filtered state."""

    make: ClassVar[type[Any]] = Watcher

    def __init__(self) -> None:
        super().__init__()
        self.store = RevisionStore()
        plans = (
            WatchPlan(resource="r", selection=BLUE),
            WatchPlan(resource="r", selection=BLUE, revision=1, initial_events=False),
            WatchPlan(resource="r", prefix="a"),
            WatchPlan(resource="r"),
            WatchPlan(resource="r"),
        )
        reader = ChangeReader(self.store)
        self.watchers: list[Any] = [
            type(self).make(self.store, plan, now=0, seconds=1e9, changes=reader) for plan in plans
        ]
        self.states: list[dict[str, str]] = [{} for _ in plans]
        self.filters = [BLUE, BLUE, EVERYTHING, EVERYTHING, EVERYTHING]
        self.prefixes = ["", "", "a", "", ""]

    @rule(name=st.sampled_from(["a1", "a2", "b1"]), color=st.sampled_from(["blue", "red"]), value=st.integers(0, 1))
    def put(self, name: str, color: str, value: int) -> None:
        put(self.store, name, color, value)

    @rule(name=st.sampled_from(["a1", "a2", "b1"]))
    def delete(self, name: str) -> None:
        if self.store.get("r", name) is not None:
            self.store.delete("r", name)

    @rule(index=st.integers(0, 4), limit=st.integers(1, 3))
    def poll_some(self, index: int, limit: int) -> None:
        self._follow(index, limit)

    @rule(index=st.integers(0, 4))
    def poll_all(self, index: int) -> None:
        while self._follow(index, 2):
            pass
        items = self.store.list("r", prefix=self.prefixes[index]).items
        expected = {item.name: item.resource_version for item in items if self.filters[index].matches(item)}
        assert self.states[index] == expected

    def _follow(self, index: int, limit: int) -> bool:
        sightings: tuple[Sighting, ...] = self.watchers[index].poll(0, limit=limit)
        state = self.states[index]
        for sighting in sightings:
            assert sighting.object is not None
            name = sighting.object.name
            assert self.filters[index].matches(sighting.object)
            match sighting.type:
                case EventType.ADDED:
                    assert name not in state
                    state[name] = sighting.object.resource_version
                case EventType.MODIFIED:
                    assert int(state[name]) < int(sighting.object.resource_version)
                    state[name] = sighting.object.resource_version
                case _:
                    assert int(state.pop(name)) < int(sighting.object.resource_version) == sighting.revision
        return bool(sightings)


SETTINGS = settings(
    max_examples=examples(40), stateful_step_count=30, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    print_blob=False,
)  # fmt: skip


def test_watchers_can_rebuild_the_selected_state() -> None:
    run_state_machine_as_test(WatchMachine, settings=SETTINGS)


class _Broken:
    def __init__(self, store: RevisionStore, plan: WatchPlan, **rest: Any) -> None:
        self.real = Watcher(store, plan, **rest)

    def poll(self, now: float, *, limit: int) -> tuple[Sighting, ...]:
        return tuple(self.change(item) for item in self.real.poll(now, limit=limit) if self.keep(item))

    def keep(self, sighting: Sighting) -> bool:
        return True

    def change(self, sighting: Sighting) -> Sighting:
        return sighting


class _HidesLeaving(_Broken):
    def keep(self, sighting: Sighting) -> bool:
        return sighting.type is not EventType.DELETED


class _CallsEverythingModified(_Broken):
    def change(self, sighting: Sighting) -> Sighting:
        return Sighting(EventType.MODIFIED, sighting.object, sighting.revision)


class _KeepsTheOldRevision(_Broken):
    def change(self, sighting: Sighting) -> Sighting:
        return Sighting(sighting.type, sighting.object, 0) if sighting.type is EventType.DELETED else sighting


@pytest.mark.nightly
@pytest.mark.parametrize("broken", [_HidesLeaving, _CallsEverythingModified, _KeepsTheOldRevision])
def test_state_machine_finds_seeded_bugs(broken: Any) -> None:
    class Machine(WatchMachine):
        make = broken

    with pytest.raises(Exception):  # noqa: B017 - whatever the machine raises
        run_state_machine_as_test(Machine, settings=settings(SETTINGS, phases=[Phase.generate]))
