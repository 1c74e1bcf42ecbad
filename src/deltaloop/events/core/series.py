"""Decide whether to create an events.k8s.io/v1 event or to count it into a series.

Events belong to the same series if they differ only in their times, names and notes. The first event is written and
keeps its note. The second one starts a series and is written immediately with count 2. Further repeats are counted
locally:

    first ──▶ CREATE      second ──▶ PATCH series{2}      third … ──▶ (counted)
                                         │ 30 minutes since the last write       ──▶ PATCH series{n}, because the
                                         │                                           server expires it after an hour
                                         │ 6 minutes without a repeat            ──▶ PATCH series{n}, removed
                                         │ flush, or cache full                  ──▶ PATCH series{n}, if n is unwritten

Events are processed by their own times: ``record`` first handles the writes that were due before the event, so a server
outage does not end a series whose repeats are still in the queue. Unlike upstream, each series has its own times, and
the version of an object is not part of the key.

Source: client-go tools/events/event_broadcaster.go; KEP-383; client-go tools/events/event_broadcaster.go
(``NewEventBroadcasterAdapter``, which uses discovery at the start).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, final

from msgspec.structs import replace

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.events.core.correlation import CorrelatorOptions, EventCorrelator, Key, object_key
from deltaloop.events.core.draft import Correlated, EventApi, EventDraft

SeriesKey: TypeAlias = tuple[Key, Key, Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesOptions:
    """Options for series of events.k8s.io/v1 events.

    The intervals are those of client-go.

    Attributes:
        refresh_interval: Seconds after which the count of an active series is written again.
        finish_after: Seconds without a repeat after which a series ends.
        cache_size: Number of different events to keep. client-go has no limit.
    """

    refresh_interval: float = 1800.0
    finish_after: float = 360.0
    cache_size: int = 4096

    def __post_init__(self) -> None:
        check_types(self)
        require_positive(
            "SeriesOptions",
            refresh_interval=self.refresh_interval,
            finish_after=self.finish_after,
            cache_size=self.cache_size,
        )


def series_key(event: EventDraft) -> SeriesKey:
    """Return the key of a series. Source: ``getKey``. Unlike upstream, it excludes the versions of the objects."""
    related = event.related
    return (
        (event.type, event.action, event.reason, event.component, event.instance),
        (*object_key(event.reference), event.reference.field_path),
        (*object_key(related), related.field_path) if related is not None else (),
    )


@dataclass(slots=True)
class _Entry:
    event: EventDraft
    observed_at: float
    written_at: float


@final
class EventSeriesCache:
    """Series of one recorder. It is not thread-safe."""

    def __init__(self, options: SeriesOptions | None = None) -> None:
        self._options = options if options is not None else SeriesOptions()
        self._entries: OrderedDict[SeriesKey, _Entry] = OrderedDict()  # ordered by last repeat
        self._written: OrderedDict[SeriesKey, None] = OrderedDict()  # series, ordered by last write
        self._unwritten: OrderedDict[SeriesKey, None] = OrderedDict()  # series with a count that the server lacks

    def record(self, event: EventDraft, now: float) -> list[Correlated]:
        """Return the events to send, in order; ``now`` is the monotonic time of the event."""
        return [*self.due(now), *self._record(event, now)]

    def due(self, now: float) -> list[Correlated]:
        """Return the events whose time to be sent has come: ended series, and refreshes of the others."""
        writes = self._finished(now)
        while self._written:
            key = next(iter(self._written))
            if now - self._entries[key].written_at < self._options.refresh_interval:
                break
            writes.append(self._write(key, now))
        return writes

    def next_due(self) -> float | None:
        if not self._entries:
            return None
        at = next(iter(self._entries.values())).observed_at + self._options.finish_after
        if self._written:
            at = min(at, self._entries[next(iter(self._written))].written_at + self._options.refresh_interval)
        return at

    def take_unwritten(self, now: float) -> Correlated | None:
        """Return one series whose count is not on the server, or None."""
        return self._write(next(iter(self._unwritten)), now) if self._unwritten else None

    @property
    def unwritten(self) -> int:
        """Number of series whose count is not on the server."""
        return len(self._unwritten)

    def __len__(self) -> int:
        return len(self._entries)

    def _record(self, event: EventDraft, now: float) -> list[Correlated]:
        key = series_key(event)
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = _Entry(event, now, now)
            return [*self._make_room(now), Correlated(event, is_update=False)]
        entry.event = replace(entry.event, count=entry.event.count + 1, last_at=event.last_at)
        entry.observed_at = now
        self._entries.move_to_end(key)
        if entry.event.count == 2:
            return [self._write(key, now)]
        self._unwritten[key] = None
        return []

    def _finished(self, now: float) -> list[Correlated]:
        writes: list[Correlated] = []
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if now - entry.observed_at < self._options.finish_after:
                break
            if entry.event.count > 1:
                writes.append(self._write(key, now))
            self._forget(key)
        return writes

    def _make_room(self, now: float) -> list[Correlated]:
        writes: list[Correlated] = []
        while len(self._entries) > self._options.cache_size:
            key = next(iter(self._entries))
            if key in self._unwritten:
                writes.append(self._write(key, now))
            self._forget(key)
        return writes

    def _write(self, key: SeriesKey, now: float) -> Correlated:
        entry = self._entries[key]
        entry.written_at = now
        self._written[key] = None
        self._written.move_to_end(key)
        self._unwritten.pop(key, None)
        return Correlated(entry.event, is_update=True)

    def _forget(self, key: SeriesKey) -> None:
        del self._entries[key]
        self._written.pop(key, None)
        self._unwritten.pop(key, None)


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
