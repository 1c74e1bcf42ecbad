"""Merge events by the rules of their API, and use core/v1 if the server does not serve events.k8s.io.

Source: client-go tools/events/event_broadcaster.go (``NewEventBroadcasterAdapter``, which uses discovery at the start).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from deltaloop.events.core.correlation import CorrelatorOptions, EventCorrelator
from deltaloop.events.core.draft import Correlated, EventApi, EventDraft
from deltaloop.events.core.series import EventSeriesCache, SeriesOptions


@final
class EventMerger:
    """Merge state of one recorder. It is not thread-safe."""

    def __init__(self, api: EventApi, correlation: CorrelatorOptions, series: SeriesOptions) -> None:
        self.api: EventApi = api
        self._correlator = EventCorrelator(correlation)
        self._series = EventSeriesCache(series)

    def record(self, event: EventDraft, now: float) -> list[Correlated]:
        """Return the events to send, in order, possibly none; ``now`` is the monotonic time of the event."""
        if self.api is EventApi.EVENTS_V1:
            return self._series.record(event, now)
        correlated = self._correlator.correlate(event, now)
        return [] if correlated is None else [correlated]

    def due(self, now: float) -> list[Correlated]:
        """Return the events whose time to be sent has come."""
        return self._series.due(now)

    def next_due(self) -> float | None:
        return self._series.next_due()

    def take_unwritten(self, now: float) -> Correlated | None:
        """Return one count that is not on the server, or None."""
        return self._series.take_unwritten(now)

    @property
    def unwritten(self) -> int:
        return self._series.unwritten

    def fall_back(self, events: Iterable[Correlated], now: float) -> list[Correlated]:
        """Switch to core/v1, and return the events to send for ``events`` and for counts that were not written yet."""
        self.api = EventApi.CORE_V1
        left = [each.event for each in events]
        while (unwritten := self._series.take_unwritten(now)) is not None:
            left.append(unwritten.event)
        self._series = EventSeriesCache()
        return [sent for event in left for sent in self.record(event, now)]
