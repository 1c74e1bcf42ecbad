from __future__ import annotations

from deltaloop.events.core.correlation import CorrelatorOptions
from deltaloop.events.core.draft import Correlated, EventApi
from deltaloop.events.core.series import EventMerger, SeriesOptions
from tests.events.core.test_series import draft, shown


def make(api: EventApi) -> EventMerger:
    return EventMerger(api, CorrelatorOptions(spam_burst=3), SeriesOptions())


def test_core_events_are_counted_and_have_no_pending_writes() -> None:
    merger = make(EventApi.CORE_V1)
    writes = [shown(merger.record(draft(f"n{index}"), 0.0)) for index in range(4)]
    assert writes == [[("n0", 1, False)], [("n0", 2, True)], [("n0", 3, True)], []]
    assert (merger.due(1e9), merger.next_due(), merger.take_unwritten(0.0), merger.unwritten) == ([], None, None, 0)


def test_events_become_series() -> None:
    merger = make(EventApi.EVENTS_V1)
    writes = [shown(merger.record(draft(f"n{index}"), 0.0)) for index in range(3)]
    assert writes == [[("n0", 1, False)], [("n0", 2, True)], []]
    assert (merger.unwritten, merger.next_due()) == (1, 360.0)
    assert shown(merger.due(360.0)) == [("n0", 3, True)]


def test_unwritten_counts_are_sent_as_core_events_after_switch() -> None:
    merger = make(EventApi.EVENTS_V1)
    for about in ("a", "a", "a", "b", "b"):
        merger.record(draft(about, about=about), 0.0)
    unsent = Correlated(draft("c", about="c"), is_update=False)
    assert shown(merger.fall_back([unsent], 1.0)) == [("c", 1, False), ("a", 3, False)]
    assert (merger.api, merger.next_due()) == (EventApi.CORE_V1, None)
    assert shown(merger.record(draft("d", about="a"), 2.0)) == [("a", 4, True)]
