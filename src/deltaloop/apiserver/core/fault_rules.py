"""Fault injection: selection of the affected requests, and effects on open watches.

A fault applies to matching requests after it has skipped ``after`` of them, with its ``probability``, and expires after
``count`` requests. The delays of all applicable faults add up. Otherwise the oldest fault wins.

    do        when          effect for the client
    refuse    any request   a Status with ``code`` (429 in plain text, like flow control) and Retry-After
    delay     any request   the response arrives ``seconds`` later
    drop      any request   the connection is reset, and the request has no effect
    lose      any request   the connection is reset, but the request takes effect
    stale     get, list     the state ``behind`` revisions ago
    stale     watch         that state first, if the watch starts with a state, then the changes
    end       watch         the stream ends cleanly after ``events`` events
    cut       watch         the connection is reset after ``events`` events
    expire    watch         an ERROR event 410 Expired after ``events`` events, then the end
    stall     watch         after ``events`` events, no output for ``seconds`` (0 for no end) on an open connection
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum, auto
from typing import Final, cast, final

import msgspec

from deltaloop.api.status import ApiError, Status, StatusDetails, error_from_status
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.wire.request_info import RequestInfo

ACTIONS: Final = ("refuse", "delay", "drop", "lose", "stale", "end", "cut", "expire", "stall")
ON_WATCHES: Final = frozenset({"end", "cut", "expire", "stall"})
_READS: Final = frozenset({"get", "list", "watch"})
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_MESSAGES: Final = {
    409: "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version "
    "and try again",
    410: "The resourceVersion for the provided list is too old.",
    429: "Too many requests, please try again later.",
    500: "Internal error occurred: a fault was asked for",
    503: "the server is currently unable to handle the request",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Fault to inject, with its scope; an empty scope field matches all requests.

    Attributes:
        do: Effect: ``refuse``, ``delay``, ``drop``, ``lose``, ``stale``, ``end``, ``cut``, ``expire`` or ``stall``.
        verbs: Verbs such as ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete`` and
            ``deletecollection``.
        resources: Resources such as ``configmaps`` and ``deployments.apps``.
        subresources: Subresources such as ``status``. Empty for the objects and all their subresources.
        namespaces: Namespaces.
        names: Object names.
        users: User names.
        count: Number of affected requests. None for no limit.
        after: Number of matching requests to skip first.
        probability: Probability from 0 to 1 that a matching request is affected.
        code: HTTP status of ``refuse``.
        retry_after: Retry-After in seconds. None for 1 if the code is 429, and for no header otherwise.
        seconds: Length of ``delay`` or ``stall`` in seconds.
        behind: Number of revisions by which stale reads and watches lag.
        events: Number of events that a watch sends first.

    Raises:
        ValueError: If a field is out of range.
    """

    do: str
    verbs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    count: int | None = None
    after: int = 0
    probability: float = 1.0
    code: int = 500
    retry_after: int | None = None
    seconds: float = 0.0
    behind: int = 1
    events: int = 0

    def __post_init__(self) -> None:
        if self.do not in ACTIONS:
            raise ValueError(f"Fault.do is {self.do!r}; known are {', '.join(ACTIONS)}")
        if not 0 <= self.probability <= 1:
            raise ValueError(f"Fault.probability is {self.probability!r}; 0 to 1 is needed")
        if self.count is not None and self.count < 1:
            raise ValueError(f"Fault.count is {self.count!r}; 1 or more is needed, or None")
        if not 400 <= self.code <= 599:
            raise ValueError(f"Fault.code is {self.code!r}; 400 to 599 is needed")
        if not 0 <= self.seconds < float("inf"):
            raise ValueError(f"Fault.seconds is {self.seconds!r}; a finite time of 0 or more is needed")
        if min(self.after, self.behind, self.events, self.retry_after or 0) < 0:
            raise ValueError("Fault.after, behind, events and retry_after must be 0 or more")

    @classmethod
    def from_fields(cls, value: Mapping[str, object]) -> Fault:
        """Parse a fault from the fields of the HTTP API, in which a scope can be a string or a list.

        Raises:
            ValueError: If a field is unknown or has a wrong type.
        """
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(value) - known)
        if unknown:
            raise ValueError(f"unknown fields {', '.join(unknown)[:200]}; known are {', '.join(sorted(known))}")
        scopes = {"verbs", "resources", "subresources", "namespaces", "names", "users"}
        given = {name: [item] if name in scopes and isinstance(item, str) else item for name, item in value.items()}
        try:
            return msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None

    def to_fields(self) -> dict[str, object]:
        """Return the fields for the HTTP API."""
        return {
            name: list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def matches(self, info: RequestInfo, user: str) -> bool:
        """Return whether the fault's scope includes a request."""
        path = info.resource
        if self.do in ON_WATCHES and info.verb != "watch":
            return False
        if self.do == "stale" and (info.verb not in _READS or path is None):
            return False
        if path is None and (self.resources or self.namespaces or self.names or self.subresources):
            return False
        wanted = (
            (self.verbs, info.verb),
            (self.users, user),
            (self.resources, info.group_resource),
            (self.subresources, path.subresource if path is not None else ""),
            (self.namespaces, path.namespace if path is not None else ""),
            (self.names, path.name if path is not None else ""),
        )
        return all(not allowed or value in allowed for allowed, value in wanted)

    @property
    def refuses_in_plain(self) -> bool:
        """Whether ``refuse`` responds in plain text, like flow control does for 429."""
        return self.code == 429

    def refusal(self) -> ApiError:
        """Return the error of ``refuse``."""
        wait = self.retry_after or int(self.code == 429)
        message = _MESSAGES.get(self.code, f"a fault was asked for: {self.code}")
        details = StatusDetails(retry_after_seconds=wait)
        reason = _REASONS.get(self.code, "InternalError" if self.code >= 500 else "Unknown")
        return error_from_status(Status(message=message, reason=reason, details=details, code=self.code))


class Strike(msgspec.Struct, frozen=True):
    delay: float = 0.0
    fault: Fault | None = None


@dataclass(slots=True)
class _Entry:
    fault: Fault
    passed: int = 0
    struck: int = 0


@final
class FaultBook:
    """Active faults and the number of requests that each has affected."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._last = 0

    def add(self, fault: Fault) -> int:
        self._last += 1
        self._entries[self._last] = _Entry(fault)
        return self._last

    def remove(self, number: int) -> bool:
        return self._entries.pop(number, None) is not None

    def clear(self) -> None:
        self._entries.clear()

    def active(self) -> tuple[tuple[int, Fault, int], ...]:
        """Return number, fault and affected requests of the active faults, oldest first."""
        return tuple((number, entry.fault, entry.struck) for number, entry in self._entries.items())

    def strike(self, info: RequestInfo, *, user: str, draw: Callable[[], float]) -> Strike:
        """Decide about a request. ``draw`` returns a number in [0, 1) for each fault with a probability."""
        delay, struck = 0.0, None
        for number, entry in tuple(self._entries.items()):
            fault = entry.fault
            if (struck is not None and fault.do != "delay") or not fault.matches(info, user):
                continue
            if entry.passed < fault.after:
                entry.passed += 1
                continue
            if fault.probability < 1 and draw() >= fault.probability:
                continue
            entry.struck += 1
            if fault.count is not None and entry.struck >= fault.count:
                del self._entries[number]
            if fault.do == "delay":
                delay += fault.seconds
            else:
                struck = fault
        return Strike(delay, struck)


class WatchFate(Enum):
    SEND = auto()
    WAIT = auto()
    END = auto()
    CUT = auto()
    EXPIRE = auto()


_FATES: Final = {"end": WatchFate.END, "cut": WatchFate.CUT, "expire": WatchFate.EXPIRE, "stall": WatchFate.WAIT}


@final
class WatchTrouble:
    """Fault state of one open watch; a new fault replaces the previous fault."""

    def __init__(self, fault: Fault | None = None) -> None:
        """Start with the fault of the watch's request, if any."""
        self._sent = 0
        self._do = ""
        self._at_event = 0
        self._seconds = 0.0
        self._until = 0.0
        if fault is not None:
            self.order(fault)

    def order(self, fault: Fault) -> None:
        """Apply a watch fault, whose events count from now."""
        self._do = fault.do if fault.do in ON_WATCHES else ""
        self._at_event = self._sent + fault.events
        self._seconds = fault.seconds
        self._until = 0.0

    def lift(self) -> None:
        self._do = ""

    @property
    def until(self) -> float | None:
        """End time of a stall, or None if only ``lift`` ends it."""
        return self._until or None

    @property
    def counts(self) -> bool:
        """Whether events must be sent one at a time, because their number matters."""
        return bool(self._do)

    def sent(self) -> None:
        self._sent += 1

    def fate(self, now: float) -> WatchFate:
        if not self._do or self._sent < self._at_event:
            return WatchFate.SEND
        if self._do == "stall" and self._seconds:
            if not self._until:
                self._until = now + self._seconds
            elif now >= self._until:
                self._do = ""
                return WatchFate.SEND
        return _FATES[self._do]


def expired() -> Status:
    return status_errors.expired_watch(1, 2).status
