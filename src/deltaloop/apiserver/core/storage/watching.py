"""State of one watch: initial events, changes filtered by selectors, bookmarks, and the end.

A watcher has a cursor into the store's window of changes instead of a buffer. If it falls behind the window, it ends
with 410 Expired. States:

    WAITING ──(store reached the requested revision)──▶ INITIAL ──(all sent)──▶ CHANGES ──(deadline)──▶ ENDED
    └──(3 s passed: ERROR 504)──▶ ENDED              CHANGES ──(cursor left the window: ERROR 410)──▶ ENDED

The event depends on whether the old and the new object match the selectors:

    old      new      event
    no       yes      ADDED with the new object
    yes      yes      MODIFIED with the new object
    yes      no       DELETED with the old object and the change's revision
    no       no       none

Source: apiserver pkg/storage/cacher (``convertToWatchEvent``, ``nextBookmarkTime``), pkg/endpoints/handlers/get.go.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.api.status import Status
from deltaloop.api.watch_event import EventType
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.external_answers import QuestionError
from deltaloop.apiserver.core.storage.converted import Timeline
from deltaloop.apiserver.core.storage.encoding import with_resource_version
from deltaloop.apiserver.core.storage.history import StoredChange
from deltaloop.apiserver.core.storage.selection import EVERYTHING, Selection
from deltaloop.apiserver.core.storage.store import CompactedError
from deltaloop.apiserver.core.wire.requests import ListQuery, parse_revision

REVISION_WAIT: Final = 3.0
BOOKMARK_BEFORE_DEADLINE: Final = 2.0
MIN_TIMEOUT: Final = 1800.0
_PLACES: Final = 16
# Work limit of one poll, so that a selector with few matches does not block others.
_ROUNDS: Final = 8
_LOOKED_AT: Final = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPlan:
    """Parameters of a watch."""

    resource: str
    prefix: str = ""
    selection: Selection = EVERYTHING
    revision: int = 0
    initial_events: bool = True
    announce_end: bool = False
    bookmarks: bool = False
    stale_at: int | None = None


def plan_watch(query: ListQuery, *, resource: str, prefix: str, selection: Selection) -> WatchPlan:
    """Convert a valid query to a plan."""
    revision = parse_revision(query.resource_version)
    if revision is None:
        raise status_errors.unexplained(
            f'strconv.ParseUint: parsing "{query.resource_version[:64]}": invalid syntax',
        )
    initial = query.send_initial_events if query.send_initial_events is not None else revision == 0
    return WatchPlan(
        resource=resource,
        prefix=prefix,
        selection=selection,
        revision=revision,
        initial_events=initial,
        announce_end=initial and query.allow_watch_bookmarks,
        bookmarks=query.allow_watch_bookmarks,
    )


def watch_seconds(query: ListQuery, *, random: float) -> float:
    """Return the duration of a watch in seconds: the requested timeout, or 30 to 60 minutes (``MinRequestTimeout``)."""
    if query.timeout_seconds is not None and query.timeout_seconds > 0:
        return float(query.timeout_seconds)
    return MIN_TIMEOUT * (1.0 + random)


class Sighting(msgspec.Struct, frozen=True):
    """Watch event. A bookmark has no object, and an error has a Status."""

    type: EventType | None
    object: Resource | None = None
    revision: int = 0
    ends_initial_events: bool = False
    status: Status | None = None


class Portion(msgspec.Struct, frozen=True):
    sightings: tuple[Sighting, ...]
    end: int


@final
class ChangeReader:
    """Reader that watchers at the same position share, so that events are computed once per change."""

    def __init__(self, store: Timeline) -> None:
        self._store = store
        self._read: dict[tuple[str, str, int, int], Portion] = {}
        self._read_at = (0, 0, 0)

    def after(self, cursor: int, plan: WatchPlan, *, limit: int) -> Portion:
        """Return the events for at most ``limit`` changes after a revision, or raise CompactedError."""
        store = self._store
        state = store.revision, store.compacted, store.renumberings
        if state != self._read_at or len(self._read) >= _PLACES:
            self._read.clear()
            self._read_at = state
        if not plan.selection.everything:
            return self._look(cursor, plan, limit)
        place = plan.resource, plan.prefix, cursor, limit
        portion = self._read.get(place)
        if portion is None:
            portion = self._read[place] = self._look(cursor, plan, limit)
        return portion

    def _look(self, cursor: int, plan: WatchPlan, limit: int) -> Portion:
        changes = self._store.changes_after(cursor, limit=limit)
        seen = [_sight(change, plan) for change in changes]
        return Portion(
            tuple([sighting for sighting in seen if sighting is not None]), changes[-1].revision if changes else cursor
        )


def _sight(change: StoredChange, plan: WatchPlan) -> Sighting | None:
    if change.resource != plan.resource or not change.key.startswith(plan.prefix):
        return None
    matches = plan.selection.matches
    before = change.old if change.old is not None and matches(change.old) else None
    after = change.new if change.new is not None and matches(change.new) else None
    if after is not None:
        return Sighting(EventType.ADDED if before is None else EventType.MODIFIED, after, change.revision)
    if before is not None:
        last = with_resource_version(before, change.revision)
        return Sighting(EventType.DELETED, last, change.revision)
    return None


class _Phase(Enum):
    WAITING = auto()
    INITIAL = auto()
    CHANGES = auto()
    ENDED = auto()


@final
class Watcher:
    """State machine of one watch. Poll until it returns nothing, wait for a change or ``next_due``, and repeat."""

    def __init__(
        self,
        store: Timeline,
        plan: WatchPlan,
        *,
        now: float,
        seconds: float,
        bookmark_interval: float = 60.0,
        changes: ChangeReader | None = None,
    ) -> None:
        """Start a watch; ``now`` and ``seconds`` (the maximum duration) are on the caller's clock."""
        self._store = store
        self._changes = changes or ChangeReader(store)
        self._plan = plan
        self._deadline = now + seconds
        self._wait_until = now + REVISION_WAIT
        self._bookmark_interval = bookmark_interval
        self._bookmark_due = self._next_bookmark(now)
        self._initial: deque[Resource] = deque()
        self._initial_revision = 0
        self._cursor = plan.revision
        self._runs = self._goes_on = False
        self._phase = _Phase.WAITING if plan.initial_events else _Phase.CHANGES
        if not plan.initial_events and plan.revision == 0:
            self._cursor = store.revision if plan.stale_at is None else plan.stale_at

    @property
    def ended(self) -> bool:
        return self._phase is _Phase.ENDED

    @property
    def cursor(self) -> int:
        return self._cursor

    def __repr__(self) -> str:
        return f"<Watcher of {self._plan.resource} at {self._cursor}, {self._phase.name}>"

    def next_due(self) -> float:
        """Return the time of the next poll without a change, or 0 if the last poll was incomplete."""
        if self._goes_on:
            return 0.0
        due = self._deadline
        if self._plan.bookmarks:
            due = min(due, self._bookmark_due)
        return min(due, self._wait_until) if self._phase is _Phase.WAITING else due

    def poll(self, now: float, *, limit: int = 100) -> tuple[Sighting, ...]:
        """Return the next events, at most about ``limit``, or none at the moment."""
        self._goes_on = False
        for _ in range(_ROUNDS):
            if self._phase is _Phase.ENDED:
                return ()
            if now >= self._deadline:
                self._phase = _Phase.ENDED
                return ()
            if self._phase is _Phase.WAITING:
                found = self._begin(now)
                if len(self._initial) > _LOOKED_AT:
                    break  # the list has taken a while
            elif self._phase is _Phase.INITIAL:
                found = self._next_initial(limit)
            else:
                found = self._next_changes(limit)
            if found is None:
                return self._bookmark(now)
            if found:
                return found
        self._goes_on = True
        return ()

    def _begin(self, now: float) -> tuple[Sighting, ...] | None:
        wanted, current = self._plan.revision, self._store.revision
        if wanted > current:
            if now < self._wait_until:
                return None
            return self._fail(status_errors.too_large_resource_version(wanted, current).status)
        stale_at = self._plan.stale_at
        at = stale_at if stale_at is not None and max(wanted, self._store.compacted) <= stale_at else None
        try:
            page = self._store.list(self._plan.resource, prefix=self._plan.prefix, at=at)
        except QuestionError:
            if now < self._wait_until:
                raise
            # The cache of a real server also does not catch up while objects cannot be converted.
            return self._fail(status_errors.too_large_resource_version(current, 0).status)
        self._initial.extend(page.items)
        self._initial_revision = self._cursor = page.revision
        self._runs = True
        self._phase = _Phase.INITIAL
        return ()

    def _next_initial(self, limit: int) -> tuple[Sighting, ...]:
        matches = None if self._plan.selection.everything else self._plan.selection.matches
        found: list[Sighting] = []
        for _ in range(min(limit if matches is None else _LOOKED_AT, len(self._initial))):
            obj = self._initial.popleft()
            if matches is None or matches(obj):
                found.append(Sighting(EventType.ADDED, obj, self._initial_revision))
                if len(found) == limit:
                    break
        if not self._initial:
            self._phase = _Phase.CHANGES
            if self._plan.announce_end:
                found.append(Sighting(EventType.BOOKMARK, None, self._initial_revision, ends_initial_events=True))
        return tuple(found)

    def _next_changes(self, limit: int) -> tuple[Sighting, ...] | None:
        if self._cursor == self._store.revision:
            self._runs = True
            return None
        try:
            portion = self._changes.after(self._cursor, self._plan, limit=limit)
        except CompactedError as error:
            if self._runs and not self._store.has_dropped(self._plan.resource, after=self._cursor):
                # The dropped changes are about other resources. A running watch survives a compaction.
                self._cursor = error.compacted
                return ()
            return self._fail(status_errors.expired_watch(error.revision, error.compacted).status)
        self._runs = True
        if portion.end == self._cursor:
            return None
        self._cursor = portion.end
        return portion.sightings

    def _fail(self, status: Status) -> tuple[Sighting, ...]:
        self._phase = _Phase.ENDED
        return (Sighting(None, status=status),)

    def _bookmark(self, now: float) -> tuple[Sighting, ...]:
        # A watch from a future revision cannot send bookmarks yet.
        if not self._plan.bookmarks or now < self._bookmark_due:
            return ()
        self._bookmark_due = self._next_bookmark(now)
        if self._phase is not _Phase.CHANGES or self._cursor > self._store.revision:
            return ()
        return (Sighting(EventType.BOOKMARK, None, self._cursor),)

    def _next_bookmark(self, now: float) -> float:
        regular = now + self._bookmark_interval
        last = self._deadline - BOOKMARK_BEFORE_DEADLINE
        return min(regular, last) if last > now else regular
