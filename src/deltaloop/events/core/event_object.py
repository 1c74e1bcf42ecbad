"""The Event object: its name, its fields, and the patch that counts a repeat.

Source: client-go tools/record/event.go (``makeEvent``), tools/record/util/util.go (``GenerateEventName``); API doc
core/v1 ``Event``.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from deltaloop.api.errors import InvalidInputError
from deltaloop.api.kinds import EVENT
from deltaloop.api.references import ObjectReference
from deltaloop.api.times import format_time
from deltaloop.events.core.correlation import EventDraft

EVENT_TYPES: Final = ("Normal", "Warning")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_LIMIT: Final = 253


def check_event_type(event_type: str) -> None:
    """Refuse what the API does not know.

    Raises:
        InvalidInputError: If it is neither ``Normal`` nor ``Warning``.
    """
    if event_type not in EVENT_TYPES:
        raise InvalidInputError(f"{event_type!r} is not a type of events; 'Normal' or 'Warning' is")


def event_name(about: str, nanoseconds: int, *, fallback: str) -> str:
    """Return ``<about>.<nanoseconds in hex>``, or ``fallback`` if that cannot be the name of an object."""
    name = f"{about}.{nanoseconds:x}"
    return name if len(name) <= _SUBDOMAIN_LIMIT and _SUBDOMAIN.fullmatch(name) else fallback


def event_object(event: EventDraft) -> dict[str, Any]:
    """Return the Event to create."""
    fields: dict[str, Any] = {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": event.name, "namespace": event.namespace},
        "involvedObject": _reference(event.reference),
        "reason": event.reason,
        "message": event.message,
        "source": {"component": event.component},
        "firstTimestamp": format_time(event.first_at),
        "lastTimestamp": format_time(event.last_at),
        "count": event.count,
        "type": event.type,
        "reportingComponent": event.component,
        "reportingInstance": event.instance,
    }
    if event.related is not None:
        fields["related"] = _reference(event.related)
    return fields


def count_patch(event: EventDraft) -> dict[str, Any]:
    """Return the merge patch that counts a repeat."""
    return {"count": event.count, "lastTimestamp": format_time(event.last_at), "message": event.message}


def _reference(reference: ObjectReference) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(reference)
    return fields
