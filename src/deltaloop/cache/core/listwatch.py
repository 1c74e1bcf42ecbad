"""When to list, when to watch, when to wait: the decisions of a reflector.

    LISTING ──listed, last page──▶ CONNECTING ──watch_opened──▶ STREAMING ──watch_ended──▶ CONNECTING
       ▲                                ▲                          │
       └────────── WAITING ◀────────────┴──────────────────────────┘   any failure; see DECISIONS

The driver asks ``ask`` what to do (``List``, ``Watch``, ``Wait``), does it, and feeds what came of it. A feed that
does not belong to the phase raises: ``FEEDS`` says which do. Each feed makes one decision; a failure's is returned as
a ``Reaction``, because every error is reported (client-go's watch error handler hears of some of them only).

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
Retry-After is a lower bound. It begins anew after two minutes without a failure. What happens at once cannot happen
twice in a row: a list at "" after a refused version, a full list after a lost page, and a watch after a stream of
less than a second are followed by a wait if they fail the same way.

WatchList (a watch that begins with the whole state) will be a phase beside LISTING, with the same exits.

This file is longer than most: its tables, effects and the machine are read together.

Source: client-go tools/cache/reflector.go, tools/pager/pager.go, tools/cache/retry_with_deadline.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final, TypeAlias

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.status import (
    ApiError,
    GoneError,
    InternalServerError,
    TooManyRequestsError,
    is_too_large_resource_version,
)
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.errors import RepeatedContinueError, VeryShortWatchError
from deltaloop.client.errors import TransportError
from deltaloop.client.resource_list import ResourceList
from deltaloop.pacing import Backoff, BackoffManager
from deltaloop.pacing.checks import require_not_negative, require_positive


class Phase(StrEnum):
    """Where a reflector is."""

    LISTING = "listing"
    CONNECTING = "connecting"
    STREAMING = "streaming"
    WAITING = "waiting"


FEEDS: Final[dict[str, frozenset[Phase]]] = {
    "listed": frozenset({Phase.LISTING}),
    "list_failed": frozenset({Phase.LISTING}),
    "watch_opened": frozenset({Phase.CONNECTING}),
    "watch_event": frozenset({Phase.STREAMING}),
    "watch_ended": frozenset({Phase.STREAMING}),
    "watch_failed": frozenset({Phase.CONNECTING, Phase.STREAMING}),
    "store_failed": frozenset({Phase.CONNECTING, Phase.STREAMING}),
}
"""Which feed belongs to which phase. ``store_failed`` follows a complete list or an event that could not be applied."""


class Place(StrEnum):
    """What was being done when an error came."""

    LIST = "list"
    LATER_PAGE = "later page of a list"
    CONNECT = "start of a watch"
    STREAM = "watch"
    SHORT_STREAM = "watch that ended at once"
    STORE = "store"


class Fault(Enum):
    """What kind of error it was."""

    EXPIRED = "expired"
    TOO_LARGE = "too large"
    BUSY = "busy"
    REFUSED = "refused"
    INTERNAL = "internal"
    BROKEN = "broken"
    OTHER = "other"


class Decision(StrEnum):
    """What follows an error."""

    LIST_NEWEST_NOW = "list the newest state at once"
    LIST_IN_FULL_NOW = "list without pages at once"
    LIST_LATER = "list after a wait"
    WATCH_NOW = "watch on at once"
    WATCH_LATER = "watch on after a wait"


DECISIONS: Final[dict[tuple[Place, Fault], Decision]] = {
    (Place.LIST, Fault.EXPIRED): Decision.LIST_NEWEST_NOW,
    (Place.LIST, Fault.TOO_LARGE): Decision.LIST_NEWEST_NOW,
    (Place.LATER_PAGE, Fault.EXPIRED): Decision.LIST_IN_FULL_NOW,
    (Place.LATER_PAGE, Fault.TOO_LARGE): Decision.LIST_NEWEST_NOW,
    (Place.CONNECT, Fault.REFUSED): Decision.WATCH_LATER,
    (Place.CONNECT, Fault.BUSY): Decision.WATCH_LATER,
    (Place.STREAM, Fault.BUSY): Decision.WATCH_LATER,
    (Place.SHORT_STREAM, Fault.BUSY): Decision.WATCH_LATER,
    (Place.STREAM, Fault.REFUSED): Decision.WATCH_NOW,
    (Place.STREAM, Fault.BROKEN): Decision.WATCH_NOW,
}
"""What follows which error; everything else is ``LIST_LATER``. INTERNAL in a stream has a rule of its own."""


def classify(error: BaseException) -> Fault:
    """Tell what kind of error it is."""
    if isinstance(error, GoneError):
        return Fault.EXPIRED
    if is_too_large_resource_version(error):
        return Fault.TOO_LARGE
    if isinstance(error, TooManyRequestsError):
        return Fault.BUSY
    if isinstance(error, InternalServerError):
        return Fault.INTERNAL
    if isinstance(error, TransportError):
        return Fault.REFUSED if error.refused else Fault.BROKEN
    return Fault.OTHER


@dataclass(frozen=True, slots=True)
class List:
    """Ask for one page of a list; answer with ``listed`` or ``list_failed``."""

    options: ListOptions


@dataclass(frozen=True, slots=True)
class Watch:
    """Open a watch and read it; answer with ``watch_opened``, then what the stream brings, or ``watch_failed``."""

    options: ListOptions


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again at ``until``."""

    until: float


Effect: TypeAlias = List | Watch | Wait


@dataclass(frozen=True, slots=True)
class Listed:
    """A complete list: the store now holds these objects and no others."""

    items: tuple[Resource, ...]
    resource_version: str
    skipped: int


class Verdict(Enum):
    """What to do with an event."""

    APPLY = "apply"
    BOOKMARK = "bookmark"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Reaction:
    """An error, where it came, and what follows.

    Attributes:
        error: What went wrong.
        place: What was being done.
        decision: What follows.
        delay: Seconds until then.
    """

    error: BaseException
    place: Place
    decision: Decision
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """Numbers of a reflector; the defaults are client-go's.

    Attributes:
        page_size: Objects in a page of a list; 0 lets the rules decide.
        min_watch_timeout: The server is asked to end a watch after this many seconds at least, twice as many at most;
            a number below 300 is taken as 300, as upstream.
        max_internal_error_retry: For how many seconds an InternalError in a stream is answered by watching on instead
            of listing; 0 is never.
        backoff: The wait after failures.
    """

    page_size: int = 0
    min_watch_timeout: float = 300.0
    max_internal_error_retry: float = 0.0
    backoff: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        require_not_negative(
            "ReflectorOptions", page_size=self.page_size, max_internal_error_retry=self.max_internal_error_retry
        )
        require_positive("ReflectorOptions", min_watch_timeout=self.min_watch_timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorStatistics:
    """What a reflector has done and seen; instants are on the event loop's clock.

    Attributes:
        phase: Where it is.
        list_requests: Pages asked for.
        lists: Lists that came through.
        watch_requests: Watches asked for.
        events: Events that were passed on.
        bookmarks: Bookmarks that came.
        skipped: Objects without a name, in lists and events.
        errors: Failures of any kind.
        resource_version: The last version seen.
        last_confirmed_at: When the server last gave a sign of this state being current: a list, an event, a bookmark,
            the clean end of a watch; None before the first.
        last_error: The newest error since the last success, or None.
        failing_since: When the first error since the last success came, or None.
    """

    phase: Phase
    list_requests: int
    lists: int
    watch_requests: int
    events: int
    bookmarks: int
    skipped: int
    errors: int
    resource_version: str
    last_confirmed_at: float | None
    last_error: BaseException | None
    failing_since: float | None


_DEFAULT_PAGE_SIZE: Final = 500
_MIN_WATCH_TIMEOUT: Final = 300.0
_VERY_SHORT: Final = 1.0
_INTERNAL_ERROR_QUIET: Final = 60.0
_ANY_STATE: Final = ("", "0")


@dataclass(slots=True)
class _Round:
    """One list, page by page."""

    first: ListOptions
    options: ListOptions
    items: list[Resource] = field(default_factory=list[Resource])
    resource_version: str = ""
    pages: int = 0
    in_full: bool = False


class ReflectorMachine:
    """The state machine; see the module's text."""

    def __init__(self, options: ReflectorOptions | None = None) -> None:
        """Begin with a list, due at once."""
        self.options = options or ReflectorOptions()
        self.phase = Phase.LISTING
        self.resource_version = ""
        self._backoff = BackoffManager(self.options.backoff)
        self._round: _Round | None = None
        self._version_unavailable = False
        self._server_pages = False
        self._wait_until = 0.0
        self._after_wait = Phase.LISTING
        self._watch: ListOptions | None = None
        self._watch_asked_at = 0.0
        self._stream_events = 0
        self._initial_events_first = False
        self._short_streams = 0
        self._internal_errors: tuple[float, float] | None = None  # first of the window, last
        self._list_requests = self._lists = self._watch_requests = 0
        self._events = self._bookmarks = self._skipped = self._errors = 0
        self._last_confirmed_at: float | None = None
        self._last_error: BaseException | None = None
        self._failing_since: float | None = None

    def statistics(self) -> ReflectorStatistics:
        """Return what was done and seen so far."""
        return ReflectorStatistics(
            phase=self.phase,
            list_requests=self._list_requests,
            lists=self._lists,
            watch_requests=self._watch_requests,
            events=self._events,
            bookmarks=self._bookmarks,
            skipped=self._skipped,
            errors=self._errors,
            resource_version=self.resource_version,
            last_confirmed_at=self._last_confirmed_at,
            last_error=self._last_error,
            failing_since=self._failing_since,
        )

    # What to do

    def ask(self, now: float, *, chance: float) -> Effect:
        """Return what to do now; the same until something is fed or a wait is over."""
        if self.phase is Phase.WAITING:
            if now < self._wait_until:
                return Wait(self._wait_until)
            self.phase = self._after_wait
        if self.phase is Phase.LISTING:
            if self._round is None:
                self._round = self._begin_round()
            return List(self._round.options)
        if self.phase is Phase.CONNECTING:
            if self._watch is None:
                self._watch = self._begin_watch(now, chance)
            return Watch(self._watch)
        raise RuntimeError("a watch is being read: feed what it brings before asking again")

    def _begin_round(self) -> _Round:
        version = "" if self._version_unavailable else self.resource_version or "0"
        if self.options.page_size:
            limit = self.options.page_size
        elif version in _ANY_STATE or self._server_pages:
            limit = _DEFAULT_PAGE_SIZE
        else:
            limit = 0
        first = ListOptions(resource_version=version, limit=limit)
        return _Round(first, first)

    def _begin_watch(self, now: float, chance: float) -> ListOptions:
        # The clock starts before the request: some proxies hold back the headers until the first event comes.
        self._watch_asked_at = now
        self._stream_events = 0
        self._initial_events_first = self.resource_version in _ANY_STATE
        shortest = max(self.options.min_watch_timeout, _MIN_WATCH_TIMEOUT)
        return ListOptions(
            resource_version=self.resource_version,
            allow_watch_bookmarks=True,
            timeout_seconds=int(shortest * (1.0 + chance)),
        )

    # What came of a list

    def listed(self, page: ResourceList[Resource], now: float, *, chance: float) -> Listed | Reaction | None:
        """A page came: return the whole list if it was the last one, None if there is another one to ask for.

        A server that answers with the token of the same page again has failed; that is a ``Reaction``.
        """
        round_ = self._expect_round("listed")
        self._list_requests += 1
        if page.continue_ and page.continue_ == round_.options.continue_:
            self._list_requests -= 1
            return self.list_failed(
                RepeatedContinueError("a list page names itself as the next page"), now, chance=chance
            )
        if round_.pages == 0:
            round_.resource_version = page.resource_version
        round_.pages += 1
        round_.items.extend(page.items)
        if page.continue_:
            # The token has the version in it; the server refuses to be told both.
            round_.options = round_.first.replace(
                continue_=page.continue_, resource_version="", resource_version_match=""
            )
            return None
        return self._complete(round_, now)

    def _complete(self, round_: _Round, now: float) -> Listed:
        if round_.first.resource_version == "0" and round_.pages > 1:
            self._server_pages = True
        self._version_unavailable = False
        self.resource_version = round_.resource_version
        self._round = None
        self._lists += 1
        self._success(now)
        self._go_on(Phase.CONNECTING)
        named = tuple(item for item in round_.items if item.name)
        skipped = len(round_.items) - len(named)
        self._skipped += skipped
        return Listed(named, round_.resource_version, skipped)

    def list_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        """A page did not come."""
        round_ = self._expect_round("list_failed")
        self._list_requests += 1
        place = Place.LATER_PAGE if round_.options.continue_ else Place.LIST
        decision = DECISIONS.get((place, classify(error)), Decision.LIST_LATER)
        self._round = None
        if decision is Decision.LIST_IN_FULL_NOW and not round_.in_full:
            again = round_.first.replace(limit=0)
            self._round = _Round(again, again, in_full=True)
            return self._react(error, place, decision, Phase.LISTING, now)
        if decision is Decision.LIST_NEWEST_NOW:
            self._version_unavailable = True
            if round_.first.resource_version:
                return self._react(error, place, decision, Phase.LISTING, now)
        return self._react_later(error, place, Phase.LISTING, now, chance)

    # What came of a watch

    def watch_opened(self, now: float) -> None:
        """The server accepted the watch and its stream is open."""
        del now
        self._expect("watch_opened")
        self._watch_requests += 1
        self._go_on(Phase.STREAMING)

    def watch_event(self, event: WatchEvent, now: float) -> Verdict:
        """The stream brought an event: say what to do with it, and move the version on if it counts."""
        self._expect("watch_event")
        version = event.object.resource_version
        if event.type is EventType.BOOKMARK:
            self._bookmarks += 1
        elif event.object.name:
            self._events += 1
        else:
            self._skipped += 1
            return Verdict.SKIP
        if event.type is not EventType.ADDED:
            self._initial_events_first = False
        if version and not self._initial_events_first:
            self.resource_version = version
        self._stream_events += 1
        self._success(now)
        return Verdict.BOOKMARK if event.type is EventType.BOOKMARK else Verdict.APPLY

    def watch_ended(self, now: float, *, chance: float) -> Reaction | None:
        """The server ended the stream in order; a ``Reaction`` if that was suspiciously soon."""
        self._expect("watch_ended")
        if self._was_useless(now):
            error = VeryShortWatchError("the watch ended within a second and brought nothing")
            return self._react_later(error, Place.SHORT_STREAM, Phase.LISTING, now, chance)
        self._success(now)
        if self._may_resume_at_once(now):
            self._go_on(Phase.CONNECTING)
        else:
            self._wait(Phase.CONNECTING, now, self._backoff.next_delay(now, chance=chance))
        return None

    def watch_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        """The watch could not be opened, its stream broke, or the server ended it with an error."""
        self._expect("watch_failed")
        fault = classify(error)
        if self.phase is Phase.CONNECTING:
            self._watch_requests += 1
            place = Place.CONNECT
        else:
            place = Place.SHORT_STREAM if self._was_useless(now) else Place.STREAM
        decision = DECISIONS.get((place, fault), Decision.LIST_LATER)
        if place is not Place.CONNECT and fault is Fault.INTERNAL and self._may_retry_internal_error(now):
            decision = Decision.WATCH_LATER
        if decision is Decision.WATCH_NOW and self._may_resume_at_once(now):
            return self._react(error, place, decision, Phase.CONNECTING, now)
        then = Phase.CONNECTING if decision in (Decision.WATCH_NOW, Decision.WATCH_LATER) else Phase.LISTING
        return self._react_later(error, place, then, now, chance)

    def store_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        """The store refused what it was given: list again, so that nothing is lost. The stream has been closed."""
        self._expect("store_failed")
        return self._react_later(error, Place.STORE, Phase.LISTING, now, chance)

    # Shared

    def _was_useless(self, now: float) -> bool:
        return now - self._watch_asked_at < _VERY_SHORT and self._stream_events == 0

    def _may_resume_at_once(self, now: float) -> bool:
        # A server that answers each watch with one event and a close would be asked as fast as it can answer. client-
        # go does that.
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

    def _react_later(self, error: BaseException, place: Place, then: Phase, now: float, chance: float) -> Reaction:
        delay = self._backoff.next_delay(now, chance=chance)
        asked = error.retry_after if isinstance(error, ApiError) else None
        delay = max(delay, asked or 0.0)
        decision = Decision.LIST_LATER if then is Phase.LISTING else Decision.WATCH_LATER
        self._failure(error, now)
        self._wait(then, now, delay)
        return Reaction(error, place, decision, delay)

    def _react(self, error: BaseException, place: Place, decision: Decision, then: Phase, now: float) -> Reaction:
        self._failure(error, now)
        self._go_on(then)
        return Reaction(error, place, decision, 0.0)

    def _go_on(self, phase: Phase) -> None:
        self._watch = None
        self.phase = phase

    def _wait(self, then: Phase, now: float, delay: float) -> None:
        self._go_on(Phase.WAITING)
        self._after_wait = then
        self._wait_until = now + delay

    def _success(self, now: float) -> None:
        self._last_confirmed_at = now
        self._last_error = None
        self._failing_since = None

    def _failure(self, error: BaseException, now: float) -> None:
        self._errors += 1
        self._last_error = error
        if self._failing_since is None:
            self._failing_since = now

    def _expect(self, feed: str) -> None:
        if self.phase not in FEEDS[feed]:
            raise RuntimeError(f"{feed} does not belong to a reflector that is {self.phase}")

    def _expect_round(self, feed: str) -> _Round:
        self._expect(feed)
        if self._round is None:
            raise RuntimeError(f"{feed} without a list that was asked for")
        return self._round
