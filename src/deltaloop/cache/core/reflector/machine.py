"""When to list, when to watch, when to wait: the decisions of a reflector.

    LISTING ──listed, last page──▶ CONNECTING ──watch_opened──▶ STREAMING ──watch_ended──▶ PROBING ──▶ CONNECTING
       │                                                           ▲
       └──watch_list_opened──▶ RECEIVING ──initial events ended────┘

    any failure: see RECOVERIES (reactions.py); most lead to WAITING, then to LISTING or CONNECTING

The driver asks ``ask`` what to do (``ListPage``, ``OpenWatchList``, ``OpenWatch``, ``Probe``, ``Wait``), does it, and
feeds what came of it. A feed that does not belong to the phase raises: ``FEEDS`` says which do. Each feed makes one
decision; a failure's is returned as a ``Reaction``, because every error is reported (client-go's watch error handler
hears of some of them only).

**Versions of lists.** The first list asks for "0", any state that the server has; later ones for the last version
seen, so that time never goes back; after the server refused that version (410, or "too large": it has not come that
far) for "", the newest state, at once. A list that came through takes this back. 410 on a later page lists everything
in one page instead, at the same version.

**Pages.** 500 objects with "" or "0", the whole list with a real version, because only then a server answers from its
watch cache. A server that pages the answer to "0" has no such cache: all later lists page. An explicit ``page_size``
always pages.

**Watches** begin at the last version, with bookmarks, for a random 5 to 10 minutes. What a stream brings moves the
version on; an object without a name is passed over and moves nothing. A stream that began at "" or "0" brings
existing objects first, in any order: the version moves with the first event that is not ADDED.

**Ends of watches.** A clean end, or a connection lost after something came, goes on from the last version. A watch
that ended within a second and brought nothing did not work, whatever it says: list again, later.

**Pace.** Whatever waits, waits for one shared backoff: 0.8 s doubling to 30 s, plus up to as much again; a server's
Retry-After is a lower bound, up to a minute. It begins anew after two minutes without a failure. What happens at once
cannot happen twice in a row: a list at "" after a refused version, a full list after a lost page, and a watch after a
stream of less than a second are followed by a wait if they fail the same way.

**Streamed lists** (WatchList, KEP-3157) come first: a watch that begins with the whole state, ended by a bookmark that
says so; then the same stream goes on. What comes is held until then, and is one ``CompleteList``. A version that the
server refuses is answered by "" at once. A server that does not offer it (400, 422 and the like), or that sends no more
of the list for 30 s (changes and new objects are no part of it, see ``rounds``), is asked for pages for half an hour;
never is the time for the whole measured. Any other failure costs this round only. Upstream tries again and again at
once (kubernetes#140902).

**Probes.** A server that was restored from a backup has versions lower than ours. It may accept a watch from the
future, and then be silent. So when a watch is begun anew (after a broken one always, after a clean end if the last look
at the server's version is a minute old) a list of one object asks for that version. If it is lower than ours, the
newest state is listed at once. A watch that begins without a successful probe is followed by one a minute later, while
its stream is open (``looked``).

What is asked is in ``effects`` and ``requests``, the states and what may be fed in each in ``states``, a list that is
under way in ``rounds``. This file is a little longer than most: the machine's feeds are read together.

Source: client-go tools/cache/reflector.go, tools/pager/pager.go, tools/cache/retry_with_deadline.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from deltaloop._internal.pacing import BackoffManager, Wait, retry_after_delay
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_version import is_comparable, is_newer
from deltaloop.api.status import ApiError
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.reflector import requests
from deltaloop.cache.core.reflector.effects import (
    CompleteList,
    Effect,
    ListPage,
    OpenWatch,
    OpenWatchList,
    Probe,
    Verdict,
)
from deltaloop.cache.core.reflector.reactions import (
    RECOVERIES,
    ErrorKind,
    Operation,
    Reaction,
    Recovery,
    classify,
    is_not_offered,
)
from deltaloop.cache.core.reflector.rounds import InitialEvents, ListRound
from deltaloop.cache.core.reflector.states import FEEDS, ReflectorPhase
from deltaloop.cache.core.reflector.statistics import ReflectorCounts, ReflectorStatistics
from deltaloop.cache.errors import (
    RepeatedContinueError,
    ServerRestoredError,
    VeryShortWatchError,
    WatchListEndedError,
)
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client.verbs.resource_list import ResourceList

_VERY_SHORT: Final = 1.0
_INTERNAL_ERROR_QUIET: Final = 60.0
_PROBE_PERIOD: Final = 60.0
_BOUND_AFTER: Final = 5.0
# Looked up for each event, where a member of an enum costs as much as a call.
_STREAMING, _BOOKMARK, _APPLY = ReflectorPhase.STREAMING, EventType.BOOKMARK, Verdict.APPLY


@final
class ReflectorMachine:
    """The state machine; see the module's text."""

    def __init__(self, options: ReflectorOptions | None = None) -> None:
        """Begin with a list, due at once."""
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
        self._internal_errors: tuple[float, float] | None = None  # first of the window, last
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
        """Return what was done and seen so far.

        Args:
            last_byte_at: When the last byte of the stream that is being read came; None if that is not known.
            pending_bytes: How much of an event that is not complete it has brought.
        """
        return self._counts.statistics(
            self.phase, self.resource_version, last_byte_at=last_byte_at, pending_bytes=pending_bytes
        )

    def saw_bytes(self, at: float) -> None:
        """The stream that is being read, or was, brought something at this time; may be told late."""
        self._counts.saw_bytes(at)

    # What to do

    def ask(self, now: float, *, random: float) -> Effect:
        """Return what to do now; the same until something is fed or a wait is over."""
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
            return Probe(requests.PROBE)
        if self.phase is ReflectorPhase.CONNECTING:
            if self._watch is None:
                self._watch = self._begin_watch(now, random)
            return OpenWatch(self._watch)
        raise RuntimeError("a watch is being read: feed what it brings before asking again")

    def _begin_round(self) -> ListRound:
        version = "" if self._version_unavailable else self.resource_version or "0"
        return ListRound.begin(
            requests.first_page(version, page_size=self.options.page_size, server_pages=self._server_pages)
        )

    def _begin_watch(self, now: float, random: float) -> ListOptions:
        # The clock starts before the request: some proxies hold back the headers until the first event comes.
        self._watch_asked_at = now
        self._stream_events = 0
        self._initial_events_first = self.resource_version in requests.ANY_STATE
        if not (self._is_proved or self._unproved) and is_comparable(self.resource_version):
            self._unproved = self.resource_version  # lower versions that this watch brings must not hide it
        self._is_proved = False
        self._probe_due = True
        timeout = requests.watch_timeout(self.options.min_watch_timeout, random)
        return requests.watch_from(self.resource_version, timeout_seconds=timeout)

    def _may_stream_a_list(self, now: float) -> bool:
        return self.options.watch_list and not self._list_instead and now >= self._no_watch_list_until

    def _begin_watch_list(self, now: float, random: float) -> ListOptions:
        self._watch_asked_at = self._progress_at = now
        self._initial_events_first = False
        version = "" if self._version_unavailable else self.resource_version
        timeout = requests.watch_timeout(self.options.min_watch_timeout, random)
        return requests.watch_list(version, timeout_seconds=timeout)

    def _should_probe(self, now: float) -> bool:
        if not (self.options.detect_restore and self._probe_due and is_comparable(self.resource_version)):
            return False
        return self._counts.last_error is not None or now - self._version_seen_at >= _PROBE_PERIOD

    @property
    def look_at(self) -> float | None:
        """When to ask for the server's version while a stream is open (``requests.PROBE``); None if that is not due.

        Answer with ``looked`` or ``look_failed``.
        """
        return self._look_at if self.options.detect_restore else None

    @property
    def give_up_at(self) -> float:
        """When a streamed list that brings no more of the list has to be given up."""
        return self._progress_at + self.options.watch_list_timeout

    # What came of a list

    def listed(self, page: ResourceList[Resource], now: float, *, random: float) -> CompleteList | Reaction | None:
        """A page came: return the whole list if it was the last one, None if there is another one to ask for.

        A server whose list would never end has failed; that is a ``Reaction``.
        """
        round_ = self._expect_round("listed")
        self._counts.saw_bytes(now)
        why = round_.never_ends(page)
        if why:
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
        """A page did not come."""
        round_ = self._expect_round("list_failed")
        self._counts.list_requests += 1
        operation = Operation.LATER_PAGE if round_.options.continue_ else Operation.LIST
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

    # What came of a streamed list

    def watch_list_opened(self, now: float) -> None:
        """The server accepted the watch that begins with the whole state."""
        self._expect("watch_list_opened")
        self._opened(now)
        self._progress_at = now
        self._go_on(ReflectorPhase.RECEIVING)
        self._look_at = now + _BOUND_AFTER

    def initial_event(self, event: WatchEvent, now: float) -> Verdict | CompleteList:
        """The stream brought an event: hold it, or return the whole list if this was the end of it."""
        self._expect("initial_event")
        self._counts.saw_bytes(now)
        if event.ends_initial_events:
            return self._end_of_initial_events(event, now)
        verdict = self._initial.take(event)
        if not self._initial.is_through:
            self._progress_at = now
        return verdict

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
        """The server ended the stream in order, but too early."""
        self._expect("watch_list_ended")
        error = WatchListEndedError(f"the streamed list ended after {len(self._initial)} objects, before it was whole")
        return self.watch_list_failed(error, now, random=random)

    def watch_list_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        """The stream could not be opened, broke, or brought nothing for too long."""
        self._expect("watch_list_failed")
        asked = self._watch.resource_version if self._watch is not None else self.resource_version
        if self.phase is ReflectorPhase.LISTING:
            self._counts.watch_requests += 1
        self._initial = InitialEvents()
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

    # What came of a probe

    def probed(self, resource_version: str, now: float) -> Reaction | None:
        """The server said its version: a ``Reaction`` if it went back."""
        self._expect("probed")
        self._probe_due = False
        reaction = self._compare(resource_version, now)
        if reaction is None:
            self._go_on(ReflectorPhase.CONNECTING)
        return reaction

    def looked(self, resource_version: str, now: float) -> Reaction | None:
        """The server said its version while a stream is open: a ``Reaction`` if it went back. Close the stream then."""
        self._expect("looked")
        self._look_at = None
        if self.phase is ReflectorPhase.STREAMING:
            reaction = self._compare(resource_version, now)
            self._is_proved = False  # for the next watch
            return reaction
        self._counts.probes += 1
        self._counts.saw_bytes(now)
        self._initial.bound = resource_version
        return None

    def look_failed(self) -> None:
        """The server did not say its version while a stream is open: leave that to the next watch."""
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
        error = ServerRestoredError(before, resource_version)
        return self._react(error, Operation.PROBE, Recovery.LIST_NEWEST_NOW, ReflectorPhase.LISTING, now)

    def _version_is_seen(self, now: float) -> None:
        self._version_seen_at = now
        self._is_proved = True
        self._unproved = ""

    def probe_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        """The server did not say its version: the watch will show what is wrong, unless there is no server at all."""
        self._expect("probe_failed")
        self._counts.probes += 1
        recovery = RECOVERIES[(Operation.PROBE, classify(error))]
        if recovery is Recovery.WATCH_LATER:
            return self._react_later(error, Operation.PROBE, ReflectorPhase.CONNECTING, now, random)
        self._probe_due = False
        return self._react(error, Operation.PROBE, recovery, ReflectorPhase.CONNECTING, now)

    # What came of a watch

    def watch_opened(self, now: float) -> None:
        """The server accepted the watch and its stream is open."""
        self._expect("watch_opened")
        self._opened(now)
        self._go_on(ReflectorPhase.STREAMING)
        if self._unproved:
            self._look_at = now + _PROBE_PERIOD

    def watch_event(self, event: WatchEvent, now: float) -> Verdict:
        """The stream brought an event: say what to do with it, and move the version on if it counts."""
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
            return Verdict.SKIP
        if self._initial_events_first and event_type is not EventType.ADDED:
            self._initial_events_first = False
        if version and not self._initial_events_first:
            self.resource_version = version
        self._stream_events += 1
        counts.succeeded(now)
        return Verdict.BOOKMARK if event_type is _BOOKMARK else _APPLY

    def watch_events(self, events: Sequence[WatchEvent], now: float) -> int:
        """The stream brought these: return how many of the first are to be applied, each as ``watch_event`` says it.

        The one behind them, if there is one, is for ``watch_event``; 0 if that is the first.
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
        """The server ended the stream in order; a ``Reaction`` if that was suspiciously soon."""
        self._expect("watch_ended")
        if self._was_useless(now):
            error = VeryShortWatchError("the watch ended within a second and brought nothing")
            return self._react_later(error, Operation.SHORT_STREAM, ReflectorPhase.LISTING, now, random)
        self._counts.succeeded(now)
        if self._may_resume_at_once(now):
            self._go_on(ReflectorPhase.CONNECTING)
        else:
            self._wait(ReflectorPhase.CONNECTING, now, self._backoff.next_delay(now, random=random))
        return None

    def watch_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        """The watch could not be opened, its stream broke, or the server ended it with an error."""
        self._expect("watch_failed")
        kind = classify(error)
        if self.phase is ReflectorPhase.CONNECTING:
            self._counts.watch_requests += 1
            operation = Operation.CONNECT
        else:
            operation = Operation.SHORT_STREAM if self._was_useless(now) else Operation.STREAM
        if kind is ErrorKind.BUSY:
            self._probe_due = False  # not one request more than needed
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

    def store_failed(self, error: BaseException, now: float, *, random: float) -> Reaction:
        """The store refused what it was given: list again, so that nothing is lost. The stream has been closed."""
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
        # A server that answers each watch with one event and a close would be asked as fast as it can answer.
        # client-go does that.
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
            raise RuntimeError(f"{feed} without a list that was asked for")
        return self._round
