"""Reactions of the reflector to errors of lists and watches.

Source: client-go tools/cache/reflector.go.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Final

import msgspec

from deltaloop.api.status import (
    ApiError,
    GoneError,
    InternalServerError,
    TooManyRequestsError,
    is_too_large_resource_version,
)
from deltaloop.cache.errors import WatchListStalledError
from deltaloop.client.errors import TransportError


class Operation(StrEnum):
    """Operation that failed."""

    LIST = "list"
    LATER_PAGE = "later page of a list"
    CONNECT = "start of a watch"
    STREAM = "watch"
    SHORT_STREAM = "watch that ended at once"
    STORE = "store"
    WATCH_LIST = "streamed list"
    PROBE = "probe"


class ErrorKind(Enum):
    EXPIRED = "expired"
    TOO_LARGE = "too large"
    BUSY = "busy"
    REFUSED = "refused"
    INTERNAL = "internal"
    BROKEN = "broken"
    OTHER = "other"


class Recovery(StrEnum):
    """Recovery after an error."""

    LIST_NEWEST_NOW = "list the newest state at once"
    LIST_IN_FULL_NOW = "list without pages at once"
    LIST_IN_PAGES_NOW = "list in pages at once"
    LIST_LATER = "list after a wait"
    WATCH_NOW = "watch on at once"
    WATCH_LATER = "watch on after a wait"


RECOVERIES: Final[dict[tuple[Operation, ErrorKind], Recovery]] = {
    (Operation.LIST, ErrorKind.EXPIRED): Recovery.LIST_NEWEST_NOW,
    (Operation.LIST, ErrorKind.TOO_LARGE): Recovery.LIST_NEWEST_NOW,
    (Operation.LATER_PAGE, ErrorKind.EXPIRED): Recovery.LIST_IN_FULL_NOW,
    (Operation.LATER_PAGE, ErrorKind.TOO_LARGE): Recovery.LIST_NEWEST_NOW,
    (Operation.CONNECT, ErrorKind.REFUSED): Recovery.WATCH_LATER,
    (Operation.CONNECT, ErrorKind.BUSY): Recovery.WATCH_LATER,
    (Operation.STREAM, ErrorKind.BUSY): Recovery.WATCH_LATER,
    (Operation.SHORT_STREAM, ErrorKind.BUSY): Recovery.WATCH_LATER,
    (Operation.WATCH_LIST, ErrorKind.EXPIRED): Recovery.LIST_NEWEST_NOW,
    (Operation.WATCH_LIST, ErrorKind.TOO_LARGE): Recovery.LIST_NEWEST_NOW,
    (Operation.WATCH_LIST, ErrorKind.INTERNAL): Recovery.LIST_IN_PAGES_NOW,
    (Operation.WATCH_LIST, ErrorKind.BROKEN): Recovery.LIST_IN_PAGES_NOW,
    (Operation.WATCH_LIST, ErrorKind.OTHER): Recovery.LIST_IN_PAGES_NOW,
    (Operation.PROBE, ErrorKind.REFUSED): Recovery.WATCH_LATER,
    (Operation.PROBE, ErrorKind.BUSY): Recovery.WATCH_LATER,
    (Operation.PROBE, ErrorKind.EXPIRED): Recovery.WATCH_NOW,
    (Operation.PROBE, ErrorKind.TOO_LARGE): Recovery.WATCH_NOW,
    (Operation.PROBE, ErrorKind.INTERNAL): Recovery.WATCH_NOW,
    (Operation.PROBE, ErrorKind.BROKEN): Recovery.WATCH_NOW,
    (Operation.PROBE, ErrorKind.OTHER): Recovery.WATCH_NOW,
    (Operation.STREAM, ErrorKind.REFUSED): Recovery.WATCH_NOW,
    (Operation.STREAM, ErrorKind.BROKEN): Recovery.WATCH_NOW,
}
"""Recovery for each operation and error, by default ``LIST_LATER``. INTERNAL in a stream has its own rule."""


def classify(error: BaseException) -> ErrorKind:
    if isinstance(error, GoneError):
        return ErrorKind.EXPIRED
    if is_too_large_resource_version(error):
        return ErrorKind.TOO_LARGE
    if isinstance(error, TooManyRequestsError):
        return ErrorKind.BUSY
    if isinstance(error, InternalServerError):
        return ErrorKind.INTERNAL
    if isinstance(error, TransportError):
        return ErrorKind.REFUSED if error.refused else ErrorKind.BROKEN
    return ErrorKind.OTHER


_NOT_OFFERED: Final = frozenset({400, 405, 406, 415, 422})
_REFUSALS: Final = frozenset({401, 403, 404})


def is_not_offered(error: BaseException) -> bool:
    """Return whether the error means that the server does not support streamed lists."""
    return isinstance(error, WatchListStalledError) or (isinstance(error, ApiError) and error.code in _NOT_OFFERED)


def is_refusal(error: BaseException | None) -> bool:
    """Return whether retries are useless: access is denied (401, 403) or the kind is unknown (404)."""
    return isinstance(error, ApiError) and error.code in _REFUSALS


class Reaction(msgspec.Struct, frozen=True):
    """An error of a reflector, and the recovery from it.

    Attributes:
        error: Exception from the client, the server or the store.
        operation: Failed operation: list, watch, probe, or write to the store.
        recovery: Next step of the reflector: list or watch, immediately or after a wait.
        delay: Seconds until the next request, or 0.
    """

    error: BaseException
    operation: Operation
    recovery: Recovery
    delay: float
