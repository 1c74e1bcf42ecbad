"""Mistakes seeded into the code, each of which the tests of ``tests.events.core.test_series`` must find."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.events.core.test_series import OPTIONS, Step, agrees

from deltaloop.events.core.series import EventSeriesCache, SeriesOptions
from lab.mutants.edited import edited

NeverRefreshes = edited(
    "NeverRefreshes", EventSeriesCache, ("writes = self._finished(now)\n", "return self._finished(now)\n")
)


EndsWithoutItsCount = edited(
    "EndsWithoutItsCount",
    EventSeriesCache,
    ("        return writes\n\n    def _make_room", "        return []\n\n    def _make_room"),
)


ForgetsByTheFirst = edited(
    "ForgetsByTheFirst",
    EventSeriesCache,
    ("self._entries.move_to_end(key)", "self._entries.move_to_end(key, last=False)"),
)


DropsTheCountOfTheEvicted = edited(
    "DropsTheCountOfTheEvicted",
    EventSeriesCache,
    ("return [*self._make_room(now), Correlated", "return [*self._make_room(now)][:0] + [Correlated"),
)


CountsWrittenAsNews = edited(
    "CountsWrittenAsNews",
    EventSeriesCache,
    ("self._unwritten.pop(key, None)\n        return", "self._unwritten[key] = None\n        return"),
)


EndsWhatStillRepeats = edited(
    "EndsWhatStillRepeats",
    EventSeriesCache,
    ("[*self.due(now), *self._record(event, now)]", "[*self._record(event, now), *self.due(now)]"),
)


REFRESHED: list[Step] = [("a", 0.0), ("a", 0.0), ("a", 3.0), ("a", 3.0), ("a", 3.0)]


ENDED: list[Step] = [("a", 0.0), ("a", 0.0), ("a", 0.0), ("wait", 5.0)]


LATE: list[Step] = [("a", 0.0), ("a", 0.0), ("a", 5.0)]


IDLE: list[Step] = [("a", 0.0), ("b", 1.0), ("a", 1.0), ("c", 1.0)]


CROWDED: list[Step] = [("a", 0.0), ("a", 0.0), ("a", 0.0), ("b", 0.0), ("c", 0.0)]


@pytest.mark.parametrize(
    ("bug", "history"),
    [
        (NeverRefreshes, REFRESHED),
        (EndsWithoutItsCount, ENDED),
        (ForgetsByTheFirst, IDLE),
        (DropsTheCountOfTheEvicted, CROWDED),
        (CountsWrittenAsNews, [("a", 0.0), ("a", 0.0), ("flush", 0.0)]),
        (EndsWhatStillRepeats, LATE),
    ],
)
def test_model_detects_seeded_bug(bug: Callable[[SeriesOptions], EventSeriesCache], history: list[Step]) -> None:
    assert agrees(EventSeriesCache(OPTIONS), history)
    assert not agrees(bug(OPTIONS), history)
