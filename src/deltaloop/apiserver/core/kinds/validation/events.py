"""Events, which are about something in their namespace, and those of events.k8s.io, which have to say more.

Source: Kubernetes pkg/apis/core/validation/events.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation.checks import IMMUTABLE, shown
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.schemas.faults import FieldError, invalid_value, required
from deltaloop.schemas.json_values import at, mapping, text

Fields = dict[str, Any]

# What has a length in events with an ``eventTime``: the field, the name in messages, the most signs.
_LENGTHS: Final = (
    ("reportingInstance", "reportingInstance", 128),
    ("action", "action", 128),
    ("reason", "reason", 128),
    ("note", "message", 1024),
    ("message", "message", 1024),
)
_NEEDED: Final = ("reportingInstance", "action", "reason")
# Fields of events.k8s.io that only older events have, and their names in messages.
_DEPRECATED: Final = (
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("deprecatedSource", "source"),
)
_KEPT: Final = (
    ("regarding", "involvedObject"),
    ("reason", "reason"),
    ("note", "message"),
    *_DEPRECATED,
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
)


def new_event_errors(event: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a new event of the core group."""
    yield from _common_errors(event, mapping(event.get("involvedObject")), "reportingComponent")


def new_event_of_events_errors(event: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a new event of events.k8s.io."""
    yield from _common_errors(event, mapping(event.get("regarding")), "reportingController")
    if event.get("eventTime") is None:
        yield required("eventTime")
    kind = text(event.get("type"))
    if kind not in ("Normal", "Warning"):
        yield invalid_value("type", '""', "has invalid value: " + kind)
    for field, told in _DEPRECATED:
        if event.get(field):
            yield invalid_value(told, '""', "needs to be unset")


def _common_errors(event: Fields, about: Fields, controller: str) -> Iterator[FieldError]:
    namespace, place = text(at(event, "metadata", "namespace")), text(about.get("namespace"))
    if event.get("eventTime") is None:
        # What is about something without a namespace goes to the namespace ``default``.
        if place != namespace and not (not place and namespace == "default"):
            yield invalid_value("involvedObject.namespace", shown(place), "does not match event.namespace")
        return
    if not place and namespace not in ("default", "kube-system"):
        yield invalid_value("involvedObject.namespace", shown(place), "does not match event.namespace")
    if not event.get(controller):
        yield required(controller)
    yield from qualified_name_errors(text(event.get(controller)), controller)
    for field in _NEEDED:
        if not event.get(field):
            yield required(field)
    for field, told, longest in _LENGTHS:
        if len(text(event.get(field)).encode()) > longest:
            yield invalid_value(told, '""', f"can have at most {longest} characters")


def event_of_events_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error for each part of an event of events.k8s.io that an update changes: only its series may."""
    for field, told in _KEPT:
        if (before.get(field) or None) != (after.get(field) or None):
            yield invalid_value(told, shown(after.get(field)), IMMUTABLE)
