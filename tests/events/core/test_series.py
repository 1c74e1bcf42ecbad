"""The series by examples, and as a machine against a naive model; seeded bugs must be caught by the machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from deltaloop.api.references import ObjectReference
from deltaloop.events.core.draft import Correlated, EventDraft
from deltaloop.events.core.series import EventSeriesCache, SeriesOptions
from tests.having import having
from tests.nightly import examples

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def draft(name: str = "n1", *, at: float = 0.0, about: str = "pod", **fields: Any) -> EventDraft:
    when = START + timedelta(seconds=at)
    known: dict[str, Any] = {"action": "Act", "reason": "R", "type": "Normal", "message": "m"} | fields
    return EventDraft(
        name=name,
        namespace="default",
        reference=ObjectReference(kind="Pod", namespace="default", name=about, resource_version=name),
        component="c",
        instance="i",
        first_at=when,
        last_at=when,
        **known,
    )


def shown(writes: list[Correlated]) -> list[tuple[str, int, bool]]:
    return [(write.event.name, write.event.count, write.is_update) for write in writes]


def test_second_event_starts_series_and_others_are_counted() -> None:
    series = EventSeriesCache()
    assert shown(series.record(draft("n1", message="first"), 0.0)) == [("n1", 1, False)]
    [second] = series.record(draft("n2", at=5, message="second"), 5.0)
    assert shown([second]) == [("n1", 2, True)]
    assert (second.event.message, second.event.first_at) == ("first", START)
    assert second.event.last_at == START + timedelta(seconds=5)
    assert series.record(draft("n3", at=6), 6.0) == []
    assert series.unwritten == 1


@pytest.mark.parametrize(
    "other",
    [
        draft(action="Other"),
        draft(reason="Other"),
        draft(type="Warning"),
        draft(about="other"),
        draft(related=ObjectReference(kind="Node", name="n")),
        replace(draft(), component="other"),
        replace(draft(), instance="other"),
        replace(draft(), reference=ObjectReference(kind="Pod", namespace="default", name="pod", field_path="x")),
    ],
)
def test_different_field_makes_new_event(other: EventDraft) -> None:
    series = EventSeriesCache()
    series.record(draft(), 0.0)
    assert shown(series.record(other, 0.0)) == [("n1", 1, False)]
    assert len(series) == 2


def test_continuing_series_is_written_every_thirty_minutes() -> None:
    series = EventSeriesCache()
    writes = {at: shown(series.record(draft(f"n{at}", at=at), at)) for at in range(0, 4000, 300)}
    assert {at: write for at, write in writes.items() if write} == {
        0: [("n0", 1, False)],
        300: [("n0", 2, True)],
        2100: [("n0", 7, True)],
        3900: [("n0", 13, True)],
    }


def test_series_ends_six_minutes_after_last_repeat() -> None:
    series = EventSeriesCache()
    for at in (0, 10, 20):
        series.record(draft(f"n{at}", at=at), at)
    series.record(draft("alone", at=20, about="other"), 20)
    assert series.next_due() == 380
    assert series.due(379.9) == []
    assert len(series) == 2
    assert shown(series.due(380)) == [("n0", 3, True)]
    assert (len(series), series.next_due()) == (0, None)
    assert shown(series.record(draft("new", at=400), 400)) == [("new", 1, False)]


def test_single_event_is_forgotten_without_write() -> None:
    series = EventSeriesCache()
    series.record(draft(), 0.0)
    assert series.due(360) == []
    assert len(series) == 0


def test_due_writes_precede_new_event() -> None:
    series = EventSeriesCache()
    for at in (0, 10):
        series.record(draft(f"n{at}", at=at), at)
    assert shown(series.record(draft("n2", at=370), 370)) == [("n0", 2, True), ("n2", 1, False)]


def test_unwritten_counts_are_taken_once() -> None:
    series = EventSeriesCache()
    for about in ("a", "b", "c"):
        for at in range(3 if about != "c" else 2):
            series.record(draft(about, at=at, about=about), 2)
    taken = [series.take_unwritten(5), series.take_unwritten(5), series.take_unwritten(5)]
    assert shown([write for write in taken if write is not None]) == [("a", 3, True), ("b", 3, True)]
    assert series.unwritten == 0


def test_full_cache_writes_count_of_longest_idle_series() -> None:
    series = EventSeriesCache(SeriesOptions(cache_size=1))
    for _ in range(3):
        series.record(draft("a", about="a"), 0.0)
    assert shown(series.record(draft("b", about="b"), 1.0)) == [("a", 3, True), ("b", 1, False)]
    assert len(series) == 1


@pytest.mark.parametrize("option", ["refresh_interval", "finish_after", "cache_size"])
def test_options_must_be_positive(option: str) -> None:
    with pytest.raises(ValueError, check=having(argument=f"SeriesOptions.{option}")):
        SeriesOptions(**{option: 0})


# The machine: the naive model looks at everything each time, and has no order and no marks.

OPTIONS = SeriesOptions(refresh_interval=6.0, finish_after=4.0, cache_size=2)
Step = tuple[str, float]
Writes = list[tuple[str, int, bool]]


class Model:
    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self.now = 0.0

    def step(self, what: str, number: int) -> Writes:
        writes: Writes = []
        for about in list(self.entries):
            entry = self.entries[about]
            if self.now - entry["observed"] >= 4:
                writes += self.write(entry) if entry["count"] > 1 else []
                del self.entries[about]
            elif entry["count"] > 1 and self.now - entry["written"] >= 6:
                writes += self.write(entry)
        if what == "flush":
            for entry in self.entries.values():
                writes += self.write(entry) if entry["news"] else []
        elif what != "wait":
            writes += self.record(what, number)
        return writes

    def record(self, about: str, number: int) -> Writes:
        if about in self.entries:
            entry = self.entries[about]
            entry |= {"count": entry["count"] + 1, "observed": self.now, "order": number, "news": True}
            return self.write(entry) if entry["count"] == 2 else []
        writes: Writes = []
        if len(self.entries) == 2:
            oldest = min(self.entries, key=lambda each: (self.entries[each]["observed"], self.entries[each]["order"]))
            writes += self.write(self.entries[oldest]) if self.entries[oldest]["news"] else []
            del self.entries[oldest]
        self.entries[about] = {
            "name": f"n{number}",
            "count": 1,
            "observed": self.now,
            "order": number,
            "written": self.now,
            "news": False,
        }
        return [*writes, (f"n{number}", 1, False)]

    def write(self, entry: dict[str, Any]) -> Writes:
        entry |= {"written": self.now, "news": False}
        return [(entry["name"], entry["count"], True)]

    def next_due(self) -> float | None:
        ends = [entry["observed"] + 4 for entry in self.entries.values()]
        signs = [entry["written"] + 6 for entry in self.entries.values() if entry["count"] > 1]
        return min(ends + signs, default=None)


def agrees(series: EventSeriesCache, history: list[Step]) -> bool:
    """Run both; compare what they send and when they want to be asked, and that no event is missing at the end."""
    model = Model()
    server: dict[str, int] = {}
    for number, (what, delay) in enumerate([*history, ("flush", 0.0)]):
        model.now += delay
        if what in "abc":
            writes = series.record(draft(f"n{number}", at=model.now, about=what), model.now)
        else:
            writes = series.due(model.now)
            taken = [series.take_unwritten(model.now) for _ in range(3 if what == "flush" else 0)]
            writes += [unwritten for unwritten in taken if unwritten is not None]
        if sorted(shown(writes)) != sorted(model.step(what, number)):
            return False
        if series.next_due() != model.next_due() or len(series) != len(model.entries):
            return False
        server.update((write.event.name, write.event.count) for write in writes)
    return sum(server.values()) == sum(what in "abc" for what, _ in history) and series.unwritten == 0


histories = st.lists(
    st.tuples(st.sampled_from(["a", "a", "a", "b", "c", "wait", "flush"]), st.sampled_from([0.0, 1.0, 3.0, 5.0])),
    max_size=30,
)


@given(histories)
@settings(max_examples=examples(150), derandomize=True)
def test_series_cache_matches_naive_model(history: list[Step]) -> None:
    assert agrees(EventSeriesCache(OPTIONS), history)
