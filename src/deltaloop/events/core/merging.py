"""Merges events by the rules of the API that they are written in, and changes over to core/v1 where that is needed.

A recorder begins with the API it was told. The first answer that says that events.k8s.io is not served ends that for
good: the event at hand and the counts that were not written yet become core/v1 events.

Source: client-go tools/events/event_broadcaster.go (``NewEventBroadcasterAdapter``, which asks discovery at the start).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from deltaloop.events.core.correlation import CorrelatorOptions, EventCorrelator
from deltaloop.events.core.draft import Correlated, EventApi, EventDraft
from deltaloop.events.core.series import EventSeriesCache, SeriesOptions


@final
class EventMerger:
    """The state of one recorder. Not safe for several threads; its owner calls it from one task."""

    def __init__(self, api: EventApi, correlation: CorrelatorOptions, series: SeriesOptions) -> None:
        """Begin with nothing seen."""
        self.api: EventApi = api
        self._correlator = EventCorrelator(correlation)
        self._series = EventSeriesCache(series)

    def record(self, event: EventDraft, now: float) -> list[Correlated]:
        """Take one event; return what to send, in this order. Nothing: it was counted, or the spam filter dropped it.

        Args:
            event: The event as it happened.
            now: When, in seconds on a clock that never goes back.
        """
        if self.api is EventApi.EVENTS_V1:
            return self._series.record(event, now)
        correlated = self._correlator.correlate(event, now)
        return [] if correlated is None else [correlated]

    def due(self, now: float) -> list[Correlated]:
        """Return what is to be sent because time has passed."""
        return self._series.due(now)

    def next_due(self) -> float | None:
        """Return when ``due`` has something to do, or None while there is nothing to wait for."""
        return self._series.next_due()

    def take_unwritten(self, now: float) -> Correlated | None:
        """Return one count that is not on the server; None if there is none (left)."""
        return self._series.take_unwritten(now)

    @property
    def unwritten(self) -> int:
        """How many counts are not on the server."""
        return self._series.unwritten

    def fall_back(self, events: Iterable[Correlated], now: float) -> list[Correlated]:
        """Change over to core/v1.

        Args:
            events: The events that could not be sent.
            now: Seconds on the clock of ``record``.

        Returns:
            What to send instead, for these events and for the counts that were not written yet.
        """
        self.api = EventApi.CORE_V1
        left = [each.event for each in events]
        while (unwritten := self._series.take_unwritten(now)) is not None:
            left.append(unwritten.event)
        self._series = EventSeriesCache()
        return [sent for event in left for sent in self.record(event, now)]
