"""What to do with an events.k8s.io/v1 event: send it, or count it into the series of its likes.

Theory
------
Events are isomorphic if they agree in all but their times, note and name: type, action, reason, who reports, and the
objects. The first of them is written as it is, and its note stays. The second makes a series of it, which is written at
once with count 2. From then on repeats are only counted here:

    first ──▶ CREATE      second ──▶ PATCH series{2}      third … ──▶ (counted)
                                         │ 30 minutes since the last write       ──▶ PATCH series{n}: a sign of life,
                                         │                                           the server forgets after an hour
                                         │ 6 minutes without a repeat            ──▶ PATCH series{n}, forgotten
                                         │ flush, or no room for so many series  ──▶ PATCH series{n}, if n is news

An event that stayed alone for 6 minutes is forgotten without a word. What comes after that is a new event.

Time is that of the events: `record` first does what was due before the event came, so that a queue that stood still
while the server was away ends no series whose repeats are waiting in it.

Upstream looks each 30 and each 6 minutes at all series; here each series has its own times, so that they are not all
written in one moment. And an object that only changed its version stays the same object.

Source: client-go tools/events/event_broadcaster.go; KEP-383.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.events.core.correlation import Key, object_key
from deltaloop.events.core.draft import Correlated, EventDraft

SeriesKey: TypeAlias = tuple[Key, Key, Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesOptions:
    """The numbers of series of events.k8s.io/v1 events; the times are upstream's.

    Attributes:
        refresh_interval: Seconds after which the count of a series that goes on is written again.
        finish_after: Seconds without a repeat after which a series has ended.
        cache_size: How many different events are remembered; upstream has no bound.
    """

    refresh_interval: float = 1800.0
    finish_after: float = 360.0
    cache_size: int = 4096

    def __post_init__(self) -> None:
        """Refuse numbers that make no limit."""
        check_types(self)
        require_positive(
            "SeriesOptions",
            refresh_interval=self.refresh_interval,
            finish_after=self.finish_after,
            cache_size=self.cache_size,
        )


def series_key(event: EventDraft) -> SeriesKey:
    """Return what isomorphic events have in common. Source: ``getKey``; the version of the objects is left out here."""
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
    """The series of one recorder. Not safe for several threads; its owner calls it from one task."""

    def __init__(self, options: SeriesOptions | None = None) -> None:
        """Begin with nothing seen."""
        self._options = options if options is not None else SeriesOptions()
        self._entries: OrderedDict[SeriesKey, _Entry] = OrderedDict()  # by the last repeat
        self._written: OrderedDict[SeriesKey, None] = OrderedDict()  # the series, by their last write
        self._unwritten: OrderedDict[SeriesKey, None] = OrderedDict()  # the series whose count is news

    def record(self, event: EventDraft, now: float) -> list[Correlated]:
        """Take one event; return what to send, in this order.

        Args:
            event: The event as it happened, with count 1.
            now: When, in seconds on a clock that never goes back.
        """
        return [*self.due(now), *self._record(event, now)]

    def due(self, now: float) -> list[Correlated]:
        """Return what is to be sent because time has passed: the ends of series, and signs of life of the others."""
        writes = self._finished(now)
        while self._written:
            key = next(iter(self._written))
            if now - self._entries[key].written_at < self._options.refresh_interval:
                break
            writes.append(self._write(key, now))
        return writes

    def next_due(self) -> float | None:
        """Return when ``due`` has something to do, or None while there is nothing to wait for."""
        if not self._entries:
            return None
        at = next(iter(self._entries.values())).observed_at + self._options.finish_after
        if self._written:
            at = min(at, self._entries[next(iter(self._written))].written_at + self._options.refresh_interval)
        return at

    def take_unwritten(self, now: float) -> Correlated | None:
        """Return one series whose count is not on the server; None if there is none (left)."""
        return self._write(next(iter(self._unwritten)), now) if self._unwritten else None

    @property
    def unwritten(self) -> int:
        """How many series have a count that is not on the server."""
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
