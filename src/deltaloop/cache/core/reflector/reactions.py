"""Reactions of the reflector to errors of lists and watches.

Source: client-go tools/cache/reflector.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from deltaloop.api.status import ApiError


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


class Recovery(StrEnum):
    """Recovery after an error."""

    LIST_NEWEST_NOW = "list the newest state at once"
    LIST_IN_FULL_NOW = "list without pages at once"
    LIST_IN_PAGES_NOW = "list in pages at once"
    LIST_LATER = "list after a wait"
    WATCH_NOW = "watch on at once"
    WATCH_LATER = "watch on after a wait"


_REFUSALS: Final = frozenset({401, 403, 404})


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
