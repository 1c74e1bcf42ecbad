"""How one event is delivered: create or patch, try again, or give up.

    PATCH ──404──▶ CREATE          API refusal ──▶ end (trying again would not change the answer)
      └─────┬─────────┘            no answer   ──▶ wait, then the same request again, 12 tries in all
            └──▶ end: sent

Waits have a random part, so that the components of a cluster do not all come back together when the server does: for
core/v1 the first wait is a random part of the delay, for events.k8s.io each wait is up to a quarter longer. While the
recorder is closing there is one try and no wait.

Two answers mean more for events.k8s.io. "Exists already" to the create that follows a patch is a race with an earlier
create whose answer was lost: the patch is tried again. And a 404 to a create that names no object is no missing
namespace: the server does not know the API.

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
    """The request to make now."""

    CREATE = "create"
    PATCH = "patch"


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait ``delay`` seconds, or until the recorder is closing, and ask again."""

    delay: float


class Outcome(StrEnum):
    """How a delivery ended."""

    SENT = "sent"
    EXISTS = "exists already"
    NAMESPACE_TERMINATING = "namespace is terminating"
    REFUSED = "refused by the server"
    INVALID = "not sendable"
    GIVEN_UP = "no answer, given up"
    NOT_SERVED = "the server does not serve events.k8s.io"


Effect: TypeAlias = EventWrite | Sleep | Outcome


@final
class Delivery:
    """The delivery of one event."""

    def __init__(
        self, *, is_update: bool, max_tries: int, retry_delay: float, api: EventApi = EventApi.CORE_V1
    ) -> None:
        """Begin with a patch for a repeat, and with a create otherwise."""
        self._is_update = is_update
        self._is_series = api is EventApi.EVENTS_V1
        self._effect: Effect = EventWrite.PATCH if is_update else EventWrite.CREATE
        self._after_wait = self._effect
        self._max_tries = max_tries
        self._retry_delay = retry_delay
        self.tries: int = 0

    def ask(self) -> Effect:
        """Return what to do now."""
        return self._effect

    def waited(self) -> None:
        """Take the news that the wait is over."""
        match self._effect:
            case Sleep():
                self._effect = self._after_wait
            case _:
                raise RuntimeError("waited() without a wait")

    def sent(self) -> None:
        """Take the server's yes."""
        self._request()
        self._effect = Outcome.SENT

    def failed(self, error: Exception, *, random: float, closing: bool) -> None:
        """Take an error instead of an answer.

        Args:
            error: What the client raised.
            random: A number in [0, 1).
            closing: Whether the recorder is closing.
        """
        step = self._request()
        if isinstance(error, NotFoundError) and step is EventWrite.PATCH:
            self._effect = EventWrite.CREATE  # it has expired on the server, or it never arrived
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
        raise RuntimeError("an answer without a request")


def _names_an_object(error: ApiError) -> bool:
    """Tell "there is no such namespace" from the text or the empty details of a path that nobody serves."""
    details = error.status.details
    return details is not None and bool(details.kind or details.name)


def _refusal(error: ApiError) -> Outcome:
    if isinstance(error, AlreadyExistsError):
        return Outcome.EXISTS
    causes = error.status.details.causes if error.status.details is not None else ()
    if isinstance(error, ForbiddenError) and any(cause.reason == _TERMINATING for cause in causes):
        return Outcome.NAMESPACE_TERMINATING
    return Outcome.REFUSED
