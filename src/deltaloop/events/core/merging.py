"""Merge events by the rules of their API, with a fallback to core/v1.

If a response shows that the server does not serve events.k8s.io, the recorder uses core/v1 from then on. The current
event and the counts that were not written yet become core/v1 events.

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
        """Return the events to send, in order. The list is empty if the event was only counted or was dropped.

        Args:
            event: Recorded event.
            now: Monotonic time of the event in seconds.
        """
        if self.api is EventApi.EVENTS_V1:
            return self._series.record(event, now)
        correlated = self._correlator.correlate(event, now)
        return [] if correlated is None else [correlated]

    def due(self, now: float) -> list[Correlated]:
        """Return the events whose time to be sent has come."""
        return self._series.due(now)

    def next_due(self) -> float | None:
        """Return the time of the next ``due`` event, or None."""
        return self._series.next_due()

    def take_unwritten(self, now: float) -> Correlated | None:
        """Return one count that is not on the server, or None."""
        return self._series.take_unwritten(now)

    @property
    def unwritten(self) -> int:
        """Number of counts that are not on the server."""
        return self._series.unwritten

    def fall_back(self, events: Iterable[Correlated], now: float) -> list[Correlated]:
        """Switch to core/v1.

        Args:
            events: Events that could not be sent.
            now: Seconds on the clock of ``record``.

        Returns:
            Events to send for ``events`` and for the counts that were not written yet.
        """
        self.api = EventApi.CORE_V1
        left = [each.event for each in events]
        while (unwritten := self._series.take_unwritten(now)) is not None:
            left.append(unwritten.event)
        self._series = EventSeriesCache()
        return [sent for event in left for sent in self.record(event, now)]
