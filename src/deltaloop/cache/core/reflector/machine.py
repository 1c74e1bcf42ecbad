"""State machine of the reflector: when to list, watch, probe and wait.

    LISTING ──listed, last page──▶ CONNECTING ──watch_opened──▶ STREAMING ──watch_ended──▶ PROBING ──▶ CONNECTING
       │                                                           ▲
       └──watch_list_opened──▶ RECEIVING ──initial events ended────┘
    any failure: see RECOVERIES (reactions.py); most lead to WAITING, then to LISTING or CONNECTING

The driver calls ``ask`` for the next effect, performs it and feeds the result. A feed that ``FEEDS`` does not allow in
the phase raises. Failures are returned as ``Reaction``, because every error is reported.

**Versions of lists.** The first list uses version "0" (any state). Later lists use the last received version, so that
the cache never goes back. If the server rejects it (410, or "too large" because the server is behind), the next list
immediately uses "" (the newest state), until a list succeeds. A 410 on a later page leads to a list without pages at
the same version.

**Pages.** Lists at "" or "0" have pages of 500 objects. Lists at a real version have none, because the server then uses
its watch cache. A server that pages a list at "0" has no such cache, so all later lists use pages. An explicit
``page_size`` always applies.

**Watches** start at the last version, with bookmarks, and last a random 5 to 10 minutes. A watch from "" or "0" first
sends existing objects in any order, so the version advances only from the first event that is not ADDED. After a clean
end, or a lost connection that delivered events, the watch resumes. A watch that ends within a second without events has
failed, so the reflector lists again after a delay.

**Pace.** All waits share one backoff: 0.8 s, doubling to 30 s, plus up to 100 % jitter. Retry-After is a lower bound,
up to a minute. The backoff resets after two minutes without a failure. Immediate retries never happen twice in a row.

**Streamed lists** (WatchList, KEP-3157) are tried first: a watch begins with the complete state, which a bookmark ends,
and then continues. The reflector falls back to pages for half an hour if the server does not support the request (400,
422 and similar), or sends no more objects of the list for 30 s (see ``rounds``). Other failures affect only the current
list. Upstream retries immediately and without limit (kubernetes#140902).

**Probes.** A server that was restored from a backup has lower versions than the cache. It may accept a watch from the
future and stay silent. A probe (a list of one object) returns the current version. It precedes a new watch if the last
watch broke, or if the last known server version is a minute old. If the server went back, the newest state is listed
immediately. If a watch starts without a successful probe, a probe follows after a minute, while the stream is open
(``looked``).

Source: client-go tools/cache/reflector.go, tools/pager/pager.go, tools/cache/retry_with_deadline.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

from deltaloop._internal.pacing import BackoffManager, Wait, retry_after_delay
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_version import is_comparable, is_newer
from deltaloop.api.status import ApiError
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.reflector import effects
from deltaloop.cache.core.reflector.effects import (
    CompleteList,
    Effect,
    ListPage,
    OpenWatch,
    OpenWatchList,
    Probe,
    Verdict,
)
from deltaloop.cache.core.reflector.reactions import Operation, Reaction, Recovery
from deltaloop.cache.core.reflector.rounds import InitialEvents, ListRound
from deltaloop.cache.core.reflector.states import FEEDS, ReflectorPhase
from deltaloop.cache.core.reflector.statistics import ReflectorCounts, ReflectorStatistics
from deltaloop.cache.reflector_options import ReflectorOptions

if TYPE_CHECKING:
    from deltaloop.client.verbs.resource_list import ResourceList

_VERY_SHORT: Final = 1.0
_INTERNAL_ERROR_QUIET: Final = 60.0
_PROBE_PERIOD: Final = 60.0
_BOUND_AFTER: Final = 5.0
# Module variables, because access to an enum member costs as much as a call, and this runs for each event.
_STREAMING, _RECEIVING = ReflectorPhase.STREAMING, ReflectorPhase.RECEIVING
_BOOKMARK: Final = EventType.BOOKMARK


@final
class ReflectorMachine:
    def __init__(self, options: ReflectorOptions | None = None) -> None:
        self.options: ReflectorOptions = options or ReflectorOptions()
        self.phase: ReflectorPhase = ReflectorPhase.LISTING
        self.resource_version: str = ""
        self._backoff = BackoffManager(self.options.backoff)
        self._round: ListRound | None = None
        self._version_unavailable = False
        self._server_pages = False
        self._wait_until = 0.0
        self._after_wait = ReflectorPhase.LISTING
        self._watch: ListOptions | None = None
        self._watch_asked_at = 0.0
        self._stream_events = 0
        self._initial_events_first = False
        self._short_streams = 0
        self._internal_errors: tuple[float, float] | None = None  # first error of the window, last error
        self._initial = InitialEvents()
        self._progress_at = 0.0
        self._list_instead = False
        self._no_watch_list_until = 0.0
        self._probe_due = False
        self._version_seen_at = 0.0
        self._is_proved = False
        self._unproved = ""
        self._look_at: float | None = None
        self._counts = ReflectorCounts()

    def statistics(self, *, last_byte_at: float | None = None, pending_bytes: int = 0) -> ReflectorStatistics:
        """Return the statistics, combined with the received bytes of the open stream."""
        return self._counts.statistics(
            self.phase, self.resource_version, last_byte_at=last_byte_at, pending_bytes=pending_bytes
        )

    def saw_bytes(self, at: float) -> None:
        """Record that the current or last stream received data at this time. You can call this late."""
        self._counts.saw_bytes(at)

    def ask(self, now: float, *, random: float) -> Effect:
        """Return the next effect. It stays the same until a feed, or until a wait ends."""
        if self.phase is ReflectorPhase.WAITING:
            if now < self._wait_until:
                return Wait(self._wait_until)
            self.phase = self._after_wait
        if self.phase is ReflectorPhase.LISTING:
            if self._round is None and self._may_stream_a_list(now):
                if self._watch is None:
                    self._watch = self._begin_watch_list(now, random)
                return OpenWatchList(self._watch)
            if self._round is None:
                self._round = self._begin_round()
            return ListPage(self._round.options)
        if self.phase is ReflectorPhase.CONNECTING and self._watch is None and self._should_probe(now):
            self.phase = ReflectorPhase.PROBING
        if self.phase is ReflectorPhase.PROBING:
            return Probe(effects.PROBE)
        if self.phase is ReflectorPhase.CONNECTING:
            if self._watch is None:
                self._watch = self._begin_watch(now, random)
            return OpenWatch(self._watch)
        raise RuntimeError("a watch is open: feed its events before the next request")

    def _begin_round(self) -> ListRound:
        version = "" if self._version_unavailable else self.resource_version or "0"
        return ListRound.begin(
            effects.first_page(version, page_size=self.options.page_size, server_pages=self._server_pages)
        )

    def _begin_watch(self, now: float, random: float) -> ListOptions:
        # The clock starts before the request, because some proxies delay the headers until the first event.
        self._watch_asked_at = now
        self._stream_events = 0
        self._initial_events_first = self.resource_version in effects.ANY_STATE
        if not (self._is_proved or self._unproved) and is_comparable(self.resource_version):
            self._unproved = self.resource_version  # lower versions from this watch must not hide it
        self._is_proved = False
        self._probe_due = True
        timeout = effects.watch_timeout(self.options.min_watch_timeout, random)
        return effects.watch_from(self.resource_version, timeout_seconds=timeout)

    def _may_stream_a_list(self, now: float) -> bool:
        return self.options.watch_list and not self._list_instead and now >= self._no_watch_list_until

    def _begin_watch_list(self, now: float, random: float) -> ListOptions:
        self._watch_asked_at = self._progress_at = now
        self._initial_events_first = False
        version = "" if self._version_unavailable else self.resource_version
        timeout = effects.watch_timeout(self.options.min_watch_timeout, random)
        return effects.watch_list(version, timeout_seconds=timeout)

    def _should_probe(self, now: float) -> bool:
        if not (self.options.detect_restore and self._probe_due and is_comparable(self.resource_version)):
            return False
        return self._counts.last_error is not None or now - self._version_seen_at >= _PROBE_PERIOD

    @property
    def look_at(self) -> float | None:
        """Time of the next ``effects.PROBE`` during a stream, or None. Feed ``looked`` or ``look_failed``."""
        return self._look_at if self.options.detect_restore else None

    @property
    def give_up_at(self) -> float:
        """Time at which to abandon a streamed list that makes no progress."""
        return self._progress_at + self.options.watch_list_timeout

    # Results of a list

    def listed(self, page: ResourceList[Resource], now: float, *, random: float) -> CompleteList | Reaction | None:
        """Process a page: return the list after the last page, a ``Reaction`` if it would never end, or None."""
        round_ = self._expect_round("listed")
        self._counts.saw_bytes(now)
        why = round_.never_ends(page)
        if why:
            from deltaloop.cache.core.reflector.errors import RepeatedContinueError

            return self.list_failed(RepeatedContinueError(why), now, random=random)
        self._counts.list_requests += 1
        return self._complete(round_, now) if round_.take(page) else None

    def _complete(self, round_: ListRound, now: float) -> CompleteList:
        if round_.first.resource_version == "0" and round_.pages > 1:
            self._server_pages = True
        self.resource_version = round_.resource_version
        self._round = None
        self._has_listed(now, ReflectorPhase.CONNECTING)
        listed = round_.whole()
        self._counts.skipped += listed.skipped
        return listed

    def _has_listed(self, now: float, then: ReflectorPhase) -> None:
        self._version_unavailable = False
        self._list_instead = False
        self._probe_due = False
        self._version_is_seen(now)
        self._counts.lists += 1
        self._counts.succeeded(now)
        self._go_on(then)

    def list_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        round_ = self._expect_round("list_failed")
        self._counts.list_requests += 1
        operation = Operation.LATER_PAGE if round_.options.continue_ else Operation.LIST
        from deltaloop.cache.core.reflector.recoveries import RECOVERIES, classify  # only after errors

        recovery = RECOVERIES.get((operation, classify(error)), Recovery.LIST_LATER)
        self._round = None
        if recovery is Recovery.LIST_IN_FULL_NOW and not round_.in_full:
            again = round_.first.replace(limit=0)
            self._round = ListRound.begin(again, in_full=True)
            return self._react(error, operation, recovery, ReflectorPhase.LISTING, now)
        if recovery is Recovery.LIST_NEWEST_NOW:
            self._version_unavailable = True
            if round_.first.resource_version:
                return self._react(error, operation, recovery, ReflectorPhase.LISTING, now)
        return self._react_later(error, operation, ReflectorPhase.LISTING, now, random)

    # Results of a streamed list

    def watch_list_opened(self, now: float) -> None:
        self._expect("watch_list_opened")
        self._opened(now)
        self._progress_at = now
        self._go_on(ReflectorPhase.RECEIVING)
        self._look_at = now + _BOUND_AFTER

    def initial_event(self, event: WatchEvent, now: float) -> Verdict | CompleteList:
        if self.phase is not _RECEIVING:
            self._expect("initial_event")
        self._counts.saw_bytes(now)
        if event.type is _BOOKMARK and event.ends_initial_events:
            return self._end_of_initial_events(event, now)
        verdict = self._initial.take(event)
        if not self._initial.is_through:
            self._progress_at = now
        return verdict

    def initial_events(self, events: Sequence[WatchEvent], now: float) -> int:
        self._expect("initial_events")
        taken = self._initial.take_all(events)
        if taken:
            self._counts.saw_bytes(now)
            if not self._initial.is_through:
                self._progress_at = now
        return taken

    def other_shard_event(self, now: float) -> Verdict:
        """Process an event of a streamed list whose object does not belong to the shard."""
        self._expect("other_shard_event")
        self._counts.saw_bytes(now)
        if not self._initial.is_through:
            self._progress_at = now
        return "apply"

    def _end_of_initial_events(self, event: WatchEvent, now: float) -> CompleteList:
        listed = self._initial.whole(event.object.resource_version)
        self._initial = InitialEvents()
        self._counts.skipped += listed.skipped
        self._counts.bookmarks += 1
        self._counts.last_bookmark_at = now
        self._stream_events = 1
        self._counts.streamed_lists += 1
        self.resource_version = listed.resource_version
        self._has_listed(now, ReflectorPhase.STREAMING)
        self._is_proved = False
        self._probe_due = True
        return listed

    def watch_list_ended(self, now: float, *, random: float) -> Reaction:
        self._expect("watch_list_ended")
        from deltaloop.cache.core.reflector.errors import WatchListEndedError

        error = WatchListEndedError(
            f"the streamed list ended after {len(self._initial)} objects, before it was complete"
        )
        return self.watch_list_failed(error, now, random=random)

    def watch_list_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        """Process a stream that could not be opened, broke, or made no progress."""
        self._expect("watch_list_failed")
        asked = self._watch.resource_version if self._watch is not None else self.resource_version
        if self.phase is ReflectorPhase.LISTING:
            self._counts.watch_requests += 1
        self._initial = InitialEvents()
        from deltaloop.cache.core.reflector.recoveries import RECOVERIES, classify, is_not_offered

        recovery = RECOVERIES.get((Operation.WATCH_LIST, classify(error)), Recovery.LIST_LATER)
        if recovery is Recovery.LIST_LATER:
            return self._react_later(error, Operation.WATCH_LIST, ReflectorPhase.LISTING, now, random)
        if recovery is Recovery.LIST_NEWEST_NOW:
            first = bool(asked) and not self._version_unavailable
            self._version_unavailable = True
            if first:
                return self._react(error, Operation.WATCH_LIST, recovery, ReflectorPhase.LISTING, now)
        self._list_instead = True
        if is_not_offered(error):
            self._no_watch_list_until = now + self.options.watch_list_retry_after
        return self._react(error, Operation.WATCH_LIST, Recovery.LIST_IN_PAGES_NOW, ReflectorPhase.LISTING, now)

    # Results of a probe

    def probed(self, resource_version: str, now: float) -> Reaction | None:
        """Process the server's version, and return a ``Reaction`` if it went back."""
        self._expect("probed")
        self._probe_due = False
        reaction = self._compare(resource_version, now)
        if reaction is None:
            self._go_on(ReflectorPhase.CONNECTING)
        return reaction

    def looked(self, resource_version: str, now: float) -> Reaction | None:
        """Process the server's version during an open stream. Close the stream if this returns a ``Reaction``."""
        self._expect("looked")
        self._look_at = None
        if self.phase is ReflectorPhase.STREAMING:
            reaction = self._compare(resource_version, now)
            self._is_proved = False  # only valid for this watch
            return reaction
        self._counts.probes += 1
        self._counts.saw_bytes(now)
        self._initial.bound = resource_version
        return None

    def look_failed(self) -> None:
        """Process a failed probe during an open stream. The next watch repeats it."""
        self._expect("look_failed")
        self._counts.probes += 1
        self._look_at = None

    def _compare(self, resource_version: str, now: float) -> Reaction | None:
        before = self._unproved or self.resource_version
        self._counts.probes += 1
        self._counts.saw_bytes(now)
        self._version_is_seen(now)
        if not is_newer(before, resource_version):
            return None
        self._version_unavailable = True
        from deltaloop.cache.core.reflector.errors import ServerRestoredError

        error = ServerRestoredError(before, resource_version)
        return self._react(error, Operation.PROBE, Recovery.LIST_NEWEST_NOW, ReflectorPhase.LISTING, now)

    def _version_is_seen(self, now: float) -> None:
        self._version_seen_at = now
        self._is_proved = True
        self._unproved = ""

    def probe_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        """Process a failed probe: continue with the watch, or wait if the server is unreachable or busy."""
        self._expect("probe_failed")
        self._counts.probes += 1
        from deltaloop.cache.core.reflector.recoveries import RECOVERIES, classify

        recovery = RECOVERIES[(Operation.PROBE, classify(error))]
        if recovery is Recovery.WATCH_LATER:
            return self._react_later(error, Operation.PROBE, ReflectorPhase.CONNECTING, now, random)
        self._probe_due = False
        return self._react(error, Operation.PROBE, recovery, ReflectorPhase.CONNECTING, now)

    # Results of a watch

    def watch_opened(self, now: float) -> None:
        self._expect("watch_opened")
        self._opened(now)
        self._go_on(ReflectorPhase.STREAMING)
        if self._unproved:
            self._look_at = now + _PROBE_PERIOD

    def watch_event(self, event: WatchEvent, now: float) -> Verdict:
        """Process an event: advance the version and return how to handle the event."""
        if self.phase is not _STREAMING:
            self._expect("watch_event")
        counts, event_type, obj = self._counts, event.type, event.object
        version = obj.resource_version
        if event_type is _BOOKMARK:
            counts.bookmarks += 1
            counts.last_bookmark_at = now
        elif obj.name:
            counts.events += 1
            counts.last_event_at = now
        else:
            counts.skipped += 1
            return "skip"
        if self._initial_events_first and event_type is not EventType.ADDED:
            self._initial_events_first = False
        if version and not self._initial_events_first:
            self.resource_version = version
        self._stream_events += 1
        counts.succeeded(now)
        return "bookmark" if event_type is _BOOKMARK else "apply"

    def watch_events(self, events: Sequence[WatchEvent], now: float) -> int:
        """Process the leading changes of a batch, and return how many events to apply.

        The next goes to ``watch_event``.
        """
        if self.phase is not _STREAMING:
            self._expect("watch_events")
        if self._initial_events_first:
            return 0
        changes, version = 0, ""
        for event in events:
            obj = event.object
            if event.type is _BOOKMARK or not obj.name:
                break
            version = obj.resource_version or version
            changes += 1
        if changes:
            self._counts.events += changes
            self._counts.last_event_at = now
            self._stream_events += changes
            self.resource_version = version or self.resource_version
            self._counts.succeeded(now)
        return changes

    def watch_ended(self, now: float, *, random: float) -> Reaction | None:
        """Process a clean end of the stream, and return a ``Reaction`` if it came suspiciously early."""
        self._expect("watch_ended")
        if self._was_useless(now):
            from deltaloop.cache.core.reflector.errors import VeryShortWatchError

            error = VeryShortWatchError("the watch ended within a second and without events")
            return self._react_later(error, Operation.SHORT_STREAM, ReflectorPhase.LISTING, now, random)
        self._counts.succeeded(now)
        if self._may_resume_at_once(now):
            self._go_on(ReflectorPhase.CONNECTING)
        else:
            self._wait(ReflectorPhase.CONNECTING, now, self._backoff.next_delay(now, random=random))
        return None

    def watch_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        """Process a watch that could not be opened, whose stream broke, or that ended with an error event."""
        self._expect("watch_failed")
        from deltaloop.cache.core.reflector.recoveries import RECOVERIES, ErrorKind, classify

        kind = classify(error)
        if self.phase is ReflectorPhase.CONNECTING:
            self._counts.watch_requests += 1
            operation = Operation.CONNECT
        else:
            operation = Operation.SHORT_STREAM if self._was_useless(now) else Operation.STREAM
        if kind is ErrorKind.BUSY:
            self._probe_due = False  # send no unnecessary requests to a busy server
        recovery = RECOVERIES.get((operation, kind), Recovery.LIST_LATER)
        if operation is not Operation.CONNECT and kind is ErrorKind.INTERNAL and self._may_retry_internal_error(now):
            recovery = Recovery.WATCH_LATER
        if recovery is Recovery.WATCH_NOW and self._may_resume_at_once(now):
            return self._react(error, operation, recovery, ReflectorPhase.CONNECTING, now)
        then = (
            ReflectorPhase.CONNECTING
            if recovery in (Recovery.WATCH_NOW, Recovery.WATCH_LATER)
            else ReflectorPhase.LISTING
        )
        return self._react_later(error, operation, then, now, random)

    # Another shard

    def watch_interrupted(self) -> None:
        """Process a stream that the caller has closed. The next watch continues at its last version."""
        self._expect("watch_interrupted")
        self._go_on(ReflectorPhase.CONNECTING)

    @property
    def will_list(self) -> bool:
        """True if the next request is a list."""
        next_phase = self._after_wait if self.phase is ReflectorPhase.WAITING else self.phase
        return next_phase is ReflectorPhase.LISTING

    def list_again(self) -> None:
        """Begin a new list after the current wait. Close the stream first."""
        self._round = None
        self._watch = None
        if self.phase is ReflectorPhase.WAITING:
            self._after_wait = ReflectorPhase.LISTING
        else:
            self._go_on(ReflectorPhase.LISTING)

    def store_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        """Process an error of the store: list again, so that no changes are lost. The stream must be closed."""
        self._expect("store_failed")
        return self._react_later(error, Operation.STORE, ReflectorPhase.LISTING, now, random)

    # Shared

    def _opened(self, now: float) -> None:
        self._counts.watch_requests += 1
        self._counts.streams += 1
        self._counts.saw_bytes(now)

    def _was_useless(self, now: float) -> bool:
        return now - self._watch_asked_at < _VERY_SHORT and self._stream_events == 0

    def _may_resume_at_once(self, now: float) -> bool:
        # Without this limit, a server that closes each watch after one event would receive requests as fast as it
        # responds, as from client-go.
        if now - self._watch_asked_at >= _VERY_SHORT:
            self._short_streams = 0
            return True
        self._short_streams += 1
        return self._short_streams == 1

    def _may_retry_internal_error(self, now: float) -> bool:
        longest = self.options.max_internal_error_retry
        window = self._internal_errors
        first = now if window is None or now - window[1] >= _INTERNAL_ERROR_QUIET else window[0]
        retry = longest > 0 and now - first <= longest
        self._internal_errors = (first, now) if retry else None
        return retry

    def _react_later(
        self, error: BaseException, operation: Operation, then: ReflectorPhase, now: float, random: float
    ) -> Reaction:
        delay = self._backoff.next_delay(now, random=random)
        if isinstance(error, ApiError):
            delay = max(delay, retry_after_delay(error.retry_after))
        recovery = Recovery.LIST_LATER if then is ReflectorPhase.LISTING else Recovery.WATCH_LATER
        self._counts.failed(error, now)
        self._wait(then, now, delay)
        return Reaction(error, operation, recovery, delay)

    def _react(
        self, error: BaseException, operation: Operation, recovery: Recovery, then: ReflectorPhase, now: float
    ) -> Reaction:
        self._counts.failed(error, now)
        self._go_on(then)
        return Reaction(error, operation, recovery, 0.0)

    def _go_on(self, phase: ReflectorPhase) -> None:
        self._watch = None
        self._look_at = None
        self.phase = phase

    def _wait(self, then: ReflectorPhase, now: float, delay: float) -> None:
        self._go_on(ReflectorPhase.WAITING)
        self._after_wait = then
        self._wait_until = now + delay

    def _expect(self, feed: str) -> None:
        if self.phase not in FEEDS[feed]:
            raise RuntimeError(f"{feed} does not belong to a reflector that is {self.phase}")

    def _expect_round(self, feed: str) -> ListRound:
        self._expect(feed)
        if self._round is None:
            raise RuntimeError(f"{feed} without a requested list")
        return self._round
