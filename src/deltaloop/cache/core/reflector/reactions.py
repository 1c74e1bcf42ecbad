"""What follows which error of a list or a watch: a table.

Source: client-go tools/cache/reflector.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from deltaloop.api.status import (
    ApiError,
    GoneError,
    InternalServerError,
    TooManyRequestsError,
    is_too_large_resource_version,
)
from deltaloop.cache.errors import WatchListStalledError
from deltaloop.client.errors import TransportError


class Place(StrEnum):
    """What was being done when an error came."""

    LIST = "list"
    LATER_PAGE = "later page of a list"
    CONNECT = "start of a watch"
    STREAM = "watch"
    SHORT_STREAM = "watch that ended at once"
    STORE = "store"
    WATCH_LIST = "streamed list"
    PROBE = "probe"


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
    LIST_IN_PAGES_NOW = "list in pages at once"
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
    (Place.WATCH_LIST, Fault.EXPIRED): Decision.LIST_NEWEST_NOW,
    (Place.WATCH_LIST, Fault.TOO_LARGE): Decision.LIST_NEWEST_NOW,
    (Place.WATCH_LIST, Fault.INTERNAL): Decision.LIST_IN_PAGES_NOW,
    (Place.WATCH_LIST, Fault.BROKEN): Decision.LIST_IN_PAGES_NOW,
    (Place.WATCH_LIST, Fault.OTHER): Decision.LIST_IN_PAGES_NOW,
    (Place.PROBE, Fault.REFUSED): Decision.WATCH_LATER,
    (Place.PROBE, Fault.BUSY): Decision.WATCH_LATER,
    (Place.PROBE, Fault.EXPIRED): Decision.WATCH_NOW,
    (Place.PROBE, Fault.TOO_LARGE): Decision.WATCH_NOW,
    (Place.PROBE, Fault.INTERNAL): Decision.WATCH_NOW,
    (Place.PROBE, Fault.BROKEN): Decision.WATCH_NOW,
    (Place.PROBE, Fault.OTHER): Decision.WATCH_NOW,
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


_NOT_OFFERED: Final = frozenset({400, 405, 406, 415, 422})
_REFUSALS: Final = frozenset({401, 403, 404})


def is_not_offered(error: BaseException) -> bool:
    """Tell whether a server that fails so to stream a list will do so the next time, too."""
    return isinstance(error, WatchListStalledError) or (isinstance(error, ApiError) and error.code in _NOT_OFFERED)


def is_refusal(error: BaseException | None) -> bool:
    """Tell whether waiting does not help: who asks may not (401, 403), or there is no such kind (404)."""
    return isinstance(error, ApiError) and error.code in _REFUSALS


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
