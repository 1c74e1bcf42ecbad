"""State machine that waits until one object fulfills a condition.

    LIST ────────── condition not fulfilled ──────────▶ WATCH from the list's version
     ▲▲   ▲                                               │ an event fulfills it: done
     ││   └───── the version is too old (410) ────────────┤
     │└── the list has no version, wait                   │
     └────── the list failed, wait ─┐   ┌─ it ended ──────┤ watch again from the last received version
                                    └───┴─ it broke, wait ┘

Delays after failures double from 0.5 s to 10 s, and are reset when data arrives. Permanent errors (403, an unknown
resource, a bad request) end the wait. A list without a version (metrics.k8s.io) cannot be watched, and is listed again
after the same delays.

A wait applies to one object: the first object with this name, or the object with the UID of ``Deleted``. If another
object takes its name, the first object is gone. This also ends waits for other conditions, unless deletions are
ignored. Objects without a UID (metrics.k8s.io) may disappear temporarily.

Source: client-go tools/watch ``UntilWithSync``, ``RetryWatcher``; kubectl pkg/cmd/wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from deltaloop._internal.pacing import Backoff, BackoffManager, retry_after_delay
from deltaloop.api.errors import DeltaloopError
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, GoneError
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent
from deltaloop.client.core.wait_conditions import Deleted, WaitCondition
from deltaloop.client.errors import TransportError

SHORT_WATCH: Final = 1.0
_BACKOFF: Final = Backoff(initial=0.5, cap=10.0, jitter=0.2)


@dataclass(frozen=True, slots=True)
class AskForList:
    """Request to list the object by its name. Report the outcome with ``saw_list`` or ``failed``."""


@dataclass(frozen=True, slots=True)
class AskForWatch:
    """Request to watch the object. Report each event with ``saw_event``, then ``watch_ended`` or ``failed``."""

    resource_version: str


@final
class Waiting:
    __slots__ = (
        "_backoff",
        "_condition",
        "_ignore_deletion",
        "_last",
        "_last_error",
        "_listed",
        "_name",
        "_uid",
        "_version",
        "done",
        "found",
        "gone",
    )

    def __init__(self, name: str, condition: WaitCondition | Deleted, *, ignore_deletion: bool = False) -> None:
        self._name = name
        self._condition = condition
        self._uid = condition.uid if isinstance(condition, Deleted) else ""
        self._backoff = BackoffManager(_BACKOFF)
        self._version = ""
        self._listed = False
        self._last: Resource | None = None
        self._last_error = ""
        self.done: bool = False
        self.found: Resource | None = None
        self.gone: bool = False
        self._ignore_deletion = ignore_deletion

    @property
    def condition(self) -> str:
        return self._condition.describe()

    def ask(self) -> AskForList | AskForWatch:
        return AskForWatch(self._version) if self._version else AskForList()

    def saw_list(self, items: Sequence[Resource], resource_version: str, *, now: float, random: float) -> float:
        """Record the response to ``AskForList``, and return the delay in seconds before the next request."""
        self._listed = True
        self._last_error = ""
        self._version = resource_version
        self._saw(next((item for item in items if item.name == self._name), None))
        if not resource_version:
            return self._backoff.next_delay(now, random=random)
        self._backoff.reset()
        return 0.0

    def saw_event(self, event: WatchEvent) -> None:
        self._backoff.reset()
        self._last_error = ""
        self._version = event.object.resource_version or self._version
        if event.type is not EventType.BOOKMARK and event.object.name == self._name:
            self._saw(None if event.type is EventType.DELETED else event.object)

    def watch_ended(self, *, lasted: float, now: float, random: float) -> float:
        """Record that the server ended a watch, and return the delay in seconds before the next request."""
        return 0.0 if lasted >= SHORT_WATCH else self._backoff.next_delay(now, random=random)

    def failed(self, error: DeltaloopError, *, now: float, random: float) -> float | None:
        """Record a failure. Return the delay in seconds before the next request, or None to raise the error."""
        if isinstance(error, GoneError):
            if not self._version:
                return None
            self._version = ""
            return self._backoff.next_delay(now, random=random)
        if isinstance(error, ApiError):
            code = error.status.code
            if code != 429 and not 500 <= code < 600:
                return None
        elif not isinstance(error, TransportError | MalformedEventError):
            return None
        self._last_error = type(error).__name__
        wait = self._backoff.next_delay(now, random=random)
        return max(wait, retry_after_delay(error.retry_after)) if isinstance(error, ApiError) else wait

    def last_seen(self) -> str:
        """Describe the last known state of the object, without its data."""
        if not self._listed:
            text = "the server has not responded yet"
        elif self._last is None:
            text = "the object does not exist"
        else:
            text = f"at resourceVersion {self._last.resource_version or '-'} {self._condition.shows(self._last)}"
        return f"{text}; the last attempt failed with {self._last_error}" if self._last_error else text

    def _saw(self, obj: Resource | None) -> None:
        self._last = obj
        if obj is not None and not self._uid:
            self._uid = obj.uid
        is_gone = obj is None or obj.uid != self._uid
        if isinstance(self._condition, Deleted):
            self.done = is_gone
        elif is_gone and self._uid and not self._ignore_deletion:
            self.done = self.gone = True
        elif obj is not None and self._condition.is_met(obj):
            self.done = True
            self.found = obj
