"""Decode the lines of a watch stream."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError, Status, decode_status, error_from_status

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class EventType(StrEnum):
    """Types of watch events with an object.

    ERROR events are raised as exceptions.
    """

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """Event of a watch.

    The object of a bookmark only contains a resource version.
    """

    type: EventType
    object: Resource

    @property
    def ends_initial_events(self) -> bool:
        """Whether this bookmark marks the end of the initial events (WatchList)."""
        return self.type is EventType.BOOKMARK and self.object.annotations.get(INITIAL_EVENTS_END) == "true"


class MalformedEventError(DeltaloopError):
    """A watch stream from a server or proxy contains an invalid line.

    The stream is not usable any more, so start a new watch. The message contains the reason and the size, but no data.
    """


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_TYPES: Final = {event_type.value: event_type for event_type in EventType}
BEGINNINGS: Final = {b'{"type":"%b","object":' % each.value.encode(): each for each in EventType}


def decode_watch_event(line: bytes, resource_type: ResourceType[Any] | None = None) -> WatchEvent:
    """Decode a line of a watch stream, or raise ApiError for an ERROR event, or MalformedEventError."""
    try:
        decoded = msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEventError(f"a watch line of {len(line)} bytes is not a watch event: {error}") from None
    decoded_type = _TYPES.get(decoded.type)
    if decoded_type is None:
        if decoded.type == "ERROR":
            raise _error(bytes(decoded.object))
        raise MalformedEventError(f"unknown type of a watch event: {decoded.type[:40]!r}")
    try:
        return WatchEvent(decoded_type, Resource.from_json(decoded.object, resource_type))
    except MalformedObjectError as error:
        raise MalformedEventError(f"a watch event of type {decoded.type} has an unreadable object: {error}") from None


def _error(body: bytes) -> ApiError:
    status = decode_status(body)
    if status is None:
        status = Status(
            code=500, reason="InternalError", message="the watch ended with an error event without a Status"
        )
    return error_from_status(status)
