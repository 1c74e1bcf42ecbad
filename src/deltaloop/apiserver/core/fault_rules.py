"""Faults on request: which request is struck by what, and what happens to a watch that is open.

A fault strikes a request that it matches, after it has passed over ``after`` of them, with its ``probability``, and is
gone once it has struck ``count`` times. Delays of all faults that strike add up; of the rest, the oldest wins.

    do        when          what the client sees
    refuse    any request   a Status with ``code`` (429 in plain text, as flow control sends it) and Retry-After
    delay     any request   the answer, ``seconds`` later
    drop      any request   the connection is reset; nothing has been done
    lose      any request   the connection is reset, but what was asked for has been done
    stale     get, list     the state as it was ``behind`` revisions ago
    stale     watch         that state first, where the watch begins with a state, then the changes since
    end       watch         a clean end of the stream after ``events`` events
    cut       watch         the connection is reset after ``events`` events
    expire    watch         an ERROR event 410 Expired after ``events`` events, then the end
    stall     watch         after ``events`` events nothing more for ``seconds`` (0 is for ever); the connection stays

The chance of each draw comes from the caller, so a seed makes a run repeatable.
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
    """One fault; an empty scope means all.

    Attributes:
        do: What happens: a word of the table above.
        verbs: ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete``, ``deletecollection``.
        resources: Such as ``configmaps`` and ``deployments.apps``.
        subresources: Such as ``status``; empty means the objects themselves and all of them.
        namespaces: Only requests of these namespaces; empty means all.
        names: Names of objects.
        users: Names of users.
        count: How many requests it strikes; None has no end.
        after: How many matching requests it lets pass first.
        probability: Of striking, from 0 to 1.
        code: Of the refusal.
        retry_after: Seconds in Retry-After; None is 1 for 429 and none for others.
        seconds: Of the delay or the stall.
        behind: How many revisions a stale read lags, or the state that a stale watch begins with.
        events: After how many events a watch is struck.
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
        """Refuse what cannot be meant.

        Raises:
            ValueError: Naming the field.
        """
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
        """Read a fault as the HTTP verb has it: the same names; a scope may be one text or a list.

        Raises:
            ValueError: If a name or a type is wrong.
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
        """Return it as the HTTP verb has it."""
        return {
            name: list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def matches(self, info: RequestInfo, user: str) -> bool:
        """Tell whether a request is in its scope."""
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
        """Whether ``refuse`` answers in plain text: flow control does, before anything knows of Status."""
        return self.code == 429

    def refusal(self) -> ApiError:
        """Return the answer of ``refuse``."""
        wait = self.retry_after or int(self.code == 429)
        message = _MESSAGES.get(self.code, f"a fault was asked for: {self.code}")
        details = StatusDetails(retry_after_seconds=wait)
        reason = _REASONS.get(self.code, "InternalError" if self.code >= 500 else "Unknown")
        return error_from_status(Status(message=message, reason=reason, details=details, code=self.code))


@dataclass(frozen=True, slots=True)
class Strike:
    """What happens to one request: a delay, then perhaps a fault."""

    delay: float = 0.0
    fault: Fault | None = None


@dataclass(slots=True)
class _Entry:
    fault: Fault
    passed: int = 0
    struck: int = 0


@final
class FaultBook:
    """The faults that are on, and how often each has struck."""

    def __init__(self) -> None:
        """Start with none."""
        self._entries: dict[int, _Entry] = {}
        self._last = 0

    def add(self, fault: Fault) -> int:
        """Switch a fault on and return its number."""
        self._last += 1
        self._entries[self._last] = _Entry(fault)
        return self._last

    def remove(self, number: int) -> bool:
        """Switch a fault off, and tell whether it was on."""
        return self._entries.pop(number, None) is not None

    def clear(self) -> None:
        """Switch all faults off."""
        self._entries.clear()

    def active(self) -> tuple[tuple[int, Fault, int], ...]:
        """Return the faults that are on, oldest first: number, fault, how often it has struck."""
        return tuple((number, entry.fault, entry.struck) for number, entry in self._entries.items())

    def strike(self, info: RequestInfo, *, user: str, draw: Callable[[], float]) -> Strike:
        """Decide about one request.

        Args:
            info: What the request asks for.
            user: Who sent it.
            draw: Gives a number in [0, 1) for each fault with a probability.
        """
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
    """What an open watch does next."""

    SEND = auto()
    WAIT = auto()
    END = auto()
    CUT = auto()
    EXPIRE = auto()


_FATES: Final = {"end": WatchFate.END, "cut": WatchFate.CUT, "expire": WatchFate.EXPIRE, "stall": WatchFate.WAIT}


@final
class WatchTrouble:
    """What faults do to one open watch; the last order counts."""

    def __init__(self, fault: Fault | None = None) -> None:
        """Begin with the fault that struck its request, if any."""
        self._sent = 0
        self._do = ""
        self._at_event = 0
        self._seconds = 0.0
        self._until = 0.0
        if fault is not None:
            self.order(fault)

    def order(self, fault: Fault) -> None:
        """Take a fault for watches; its events count from now."""
        self._do = fault.do if fault.do in ON_WATCHES else ""
        self._at_event = self._sent + fault.events
        self._seconds = fault.seconds
        self._until = 0.0

    def lift(self) -> None:
        """End a stall."""
        self._do = ""

    @property
    def until(self) -> float | None:
        """When a stall ends; None if only ``lift`` ends it."""
        return self._until or None

    @property
    def counts(self) -> bool:
        """Whether the number of events matters, so that they are sent one at a time."""
        return bool(self._do)

    def sent(self) -> None:
        """Count an event that was sent."""
        self._sent += 1

    def fate(self, now: float) -> WatchFate:
        """Decide what comes next."""
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
    """Return what an ``expire`` sends."""
    return status_errors.expired_watch(1, 2).status
