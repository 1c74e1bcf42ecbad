"""Recoveries of the reflector from the errors of lists and watches."""

from __future__ import annotations

from enum import Enum
from typing import Final

from deltaloop.api.status import (
    ApiError,
    GoneError,
    InternalServerError,
    TooManyRequestsError,
    is_too_large_resource_version,
)
from deltaloop.cache.core.reflector.errors import WatchListStalledError
from deltaloop.cache.core.reflector.reactions import Operation, Recovery
from deltaloop.client.errors import TransportError


class ErrorKind(Enum):
    EXPIRED = "expired"
    TOO_LARGE = "too large"
    BUSY = "busy"
    REFUSED = "refused"
    INTERNAL = "internal"
    BROKEN = "broken"
    OTHER = "other"


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


def is_not_offered(error: BaseException) -> bool:
    """Return whether the error means that the server does not support streamed lists."""
    return isinstance(error, WatchListStalledError) or (isinstance(error, ApiError) and error.code in _NOT_OFFERED)
