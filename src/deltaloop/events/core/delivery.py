"""Delivery of one event: create or patch, retry, or give up.

    PATCH ──404──▶ CREATE          API error   ──▶ end (a retry would return the same error)
      └─────┬─────────┘            no response ──▶ wait, then repeat the request, 12 attempts by default
            └──▶ end: sent

Waits have a random part. While the recorder is closing, there is one attempt and no wait.

Two errors have a special meaning for events.k8s.io. If a create that follows a patch returns AlreadyExists, an earlier
create succeeded but its response was lost, so the patch is repeated. If a create returns a 404 that names no object,
the server does not serve the API.

Source: client-go tools/record/event.go and tools/events/event_broadcaster.go (``recordToSink``, ``attemptRecording``,
``recordEvent``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, TypeAlias, final

from deltaloop._internal.pacing import jitter
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.status import AlreadyExistsError, ApiError, ForbiddenError, NotFoundError
from deltaloop.events.core.draft import EventApi

_JITTER: Final = 0.25
_TERMINATING: Final = "NamespaceTerminating"


class EventWrite(Enum):
    CREATE = "create"
    PATCH = "patch"


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for ``delay`` seconds or until the recorder is closing."""

    delay: float


class Outcome(StrEnum):
    SENT = "sent"
    EXISTS = "exists already"
    NAMESPACE_TERMINATING = "namespace is terminating"
    REFUSED = "rejected by the server"
    INVALID = "not sendable"
    GIVEN_UP = "no response, given up"
    NOT_SERVED = "the server does not serve events.k8s.io"


Effect: TypeAlias = EventWrite | Sleep | Outcome


@final
class Delivery:
    def __init__(
        self, *, is_update: bool, max_tries: int, retry_delay: float, api: EventApi = EventApi.CORE_V1
    ) -> None:
        """Start with a patch for a repeated event, otherwise with a create."""
        self._is_update = is_update
        self._is_series = api is EventApi.EVENTS_V1
        self._effect: Effect = EventWrite.PATCH if is_update else EventWrite.CREATE
        self._after_wait = self._effect
        self._max_tries = max_tries
        self._retry_delay = retry_delay
        self.tries: int = 0

    def ask(self) -> Effect:
        return self._effect

    def waited(self) -> None:
        match self._effect:
            case Sleep():
                self._effect = self._after_wait
            case _:
                raise RuntimeError("waited() without a wait")

    def sent(self) -> None:
        self._request()
        self._effect = Outcome.SENT

    def failed(self, error: Exception, *, random: float, closing: bool) -> None:
        """Process a failed request; ``random`` is in [0, 1)."""
        step = self._request()
        if isinstance(error, NotFoundError) and step is EventWrite.PATCH:
            self._effect = EventWrite.CREATE  # the event expired on the server, or was never created
        elif isinstance(error, AlreadyExistsError) and self._is_update and self._is_series:
            self._try_again(EventWrite.PATCH, random, closing=closing)
        elif isinstance(error, NotFoundError) and self._is_series and not _names_an_object(error):
            self._effect = Outcome.NOT_SERVED
        elif isinstance(error, ApiError):
            self._effect = _refusal(error)
        elif isinstance(error, InvalidArgumentError):
            self._effect = Outcome.INVALID
        else:
            self._try_again(step, random, closing=closing)

    def _try_again(self, step: EventWrite, random: float, *, closing: bool) -> None:
        self.tries += 1
        if closing or self.tries >= self._max_tries:
            self._effect = Outcome.GIVEN_UP
            return
        self._after_wait = step
        self._effect = Sleep(self._delay(random))

    def _delay(self, random: float) -> float:
        if self._is_series:
            return jitter(self._retry_delay, _JITTER, random=random)
        return self._retry_delay * (random if self.tries == 1 else 1.0)

    def _request(self) -> EventWrite:
        if isinstance(self._effect, EventWrite):
            return self._effect
        raise RuntimeError("response without a request")


def _names_an_object(error: ApiError) -> bool:
    """Distinguish a missing namespace from a path that the server does not serve."""
    details = error.status.details
    return details is not None and bool(details.kind or details.name)


def _refusal(error: ApiError) -> Outcome:
    if isinstance(error, AlreadyExistsError):
        return Outcome.EXISTS
    causes = error.status.details.causes if error.status.details is not None else ()
    if isinstance(error, ForbiddenError) and any(cause.reason == _TERMINATING for cause in causes):
        return Outcome.NAMESPACE_TERMINATING
    return Outcome.REFUSED
