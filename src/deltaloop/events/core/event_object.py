"""Names, fields and patches of Event objects in both APIs.

Source: client-go tools/record/event.go and tools/events/event_recorder.go (``makeEvent``), tools/record/util/util.go
(``GenerateEventName``), tools/events/helper.go (``GetFieldSelector``); API docs core/v1 and events.k8s.io/v1 ``Event``;
kubernetes pkg/apis/core/validation/events.go for the validation rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from deltaloop.api.dns_names import is_qualified_name, label_key_problems
from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.kinds import EVENT, EVENTS_V1_EVENT
from deltaloop.api.references import ObjectReference, reference_to
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType, resource_type_of
from deltaloop.api.selectors import FieldRequirement, FieldSelector
from deltaloop.api.times import format_micro_time, format_time
from deltaloop.events.core.correlation import MESSAGE_LIMIT
from deltaloop.events.core.draft import EventApi, EventDraft

EVENT_TYPES: Final = ("Normal", "Warning")
WORD_LIMIT: Final = 128
"""Limit in bytes, not characters."""
_ANNOTATIONS_LIMIT: Final = 256 * 1024
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_LIMIT: Final = 253


def check_event_type(event_type: str) -> None:
    if event_type not in EVENT_TYPES:
        raise InvalidArgumentError(f"must be 'Normal' or 'Warning', got {event_type!r}.", argument="event type")


def check_words(api: EventApi, *, reason: str, action: str) -> None:
    """Check words by the rules of events.k8s.io (at most 128 bytes), or raise InvalidArgumentError."""
    if api is EventApi.CORE_V1:
        return
    if not reason:
        raise InvalidArgumentError(f"must not be empty for {api}.", argument="reason")
    _check_size("reason", reason)
    _check_size("action", action)


def check_instance(api: EventApi, instance: str) -> None:
    """Check the instance, which events.k8s.io limits to 128 bytes, or raise InvalidArgumentError."""
    _check_unicode("instance", instance)
    if api is EventApi.EVENTS_V1:
        _check_size("instance", instance)


def check_annotations(annotations: Mapping[str, str]) -> None:
    """Check annotations by the rules of the server (qualified names, 256 KiB), or raise InvalidArgumentError."""
    for key in annotations:
        problems = label_key_problems(key.lower())
        if problems:
            raise InvalidArgumentError(f"must be the key of an annotation: {problems[0]}", argument=repr(key))
    size = sum(_size(key) + _size(text) for key, text in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        raise InvalidArgumentError(f"must have at most {_ANNOTATIONS_LIMIT} bytes, got {size}.", argument="annotations")


def _check_size(what: str, word: str) -> None:
    if _size(word) > WORD_LIMIT:
        raise InvalidArgumentError(
            f"must have at most {WORD_LIMIT} bytes for {EventApi.EVENTS_V1}, got {_size(word)}.", argument=what
        )


def _check_unicode(what: str, word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"must be Unicode, got {word!a}.", argument=what) from None


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def check_component(api: EventApi, component: str) -> None:
    """Check the reporting component, or raise InvalidArgumentError; events.k8s.io requires a qualified name."""
    if not component:
        raise InvalidArgumentError("must not be empty.", argument="component")
    _check_unicode("component", component)
    if api is EventApi.CORE_V1:
        return
    if not is_qualified_name(component):
        raise InvalidArgumentError(
            f"must be a qualified name for {api}, such as example.com/foo-controller, got {component!r}.",
            argument="component",
        )


def default_instance(api: EventApi, component: str, host: str) -> str:
    """Return the default instance. events.k8s.io requires one, core/v1 does not."""
    return cut(f"{component}-{host}", WORD_LIMIT) if api is EventApi.EVENTS_V1 else ""


def event_name(about: str, nanoseconds: int, *, fallback: str) -> str:
    """Return ``<about>.<nanoseconds in hex>``, or ``fallback`` if that is not a valid object name."""
    name = f"{about}.{nanoseconds:x}"
    return name if len(name) <= _SUBDOMAIN_LIMIT and _SUBDOMAIN.fullmatch(name) else fallback


@dataclass(frozen=True, slots=True)
class EventBodies:
    """Request bodies for one event: the complete object, and the merge patch that updates the count."""

    resource_type: ResourceType[Resource]
    created: dict[str, Any]
    patch: dict[str, Any]


def event_bodies(api: EventApi, event: EventDraft) -> EventBodies:
    if api is EventApi.EVENTS_V1:
        return EventBodies(EVENTS_V1_EVENT, events_v1_object(event), {"series": _series(event)})
    return EventBodies(EVENT, event_object(event), count_patch(event))


def event_object(event: EventDraft) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": _metadata(event),
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
    if event.action:
        fields["action"] = event.action
    if event.related is not None:
        fields["related"] = _reference(event.related)
    return fields


def count_patch(event: EventDraft) -> dict[str, Any]:
    return {"count": event.count, "lastTimestamp": format_time(event.last_at), "message": event.message}


def events_v1_object(event: EventDraft) -> dict[str, Any]:
    """Return the events.k8s.io/v1 Event to create. The reason replaces an empty action, which the API rejects."""
    fields: dict[str, Any] = {
        "apiVersion": EVENTS_V1_EVENT.api_version,
        "kind": EVENTS_V1_EVENT.kind,
        "metadata": _metadata(event),
        "eventTime": format_micro_time(event.first_at),
        "reportingController": event.component,
        "reportingInstance": event.instance,
        "action": event.action or event.reason,
        "reason": event.reason,
        "regarding": _reference(event.reference),
        "note": cut(event.message, MESSAGE_LIMIT),
        "type": event.type,
    }
    if event.related is not None:
        fields["related"] = _reference(event.related)
    if event.count > 1:
        fields["series"] = _series(event)
    return fields


def event_field_selector(about: ObjectReference, *, api: EventApi = EventApi.CORE_V1) -> str:
    """Return the field selector for lists and watches of the Events about one object.

    Args:
        about: Object. Its empty fields (name, kind, API version, uid) are not selected.
        api: Event API.

    Raises:
        ValueError: If the API is unknown.
    """
    prefix = "regarding" if EventApi(api) is EventApi.EVENTS_V1 else "involvedObject"
    wanted = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid}
    return str(
        FieldSelector(tuple(FieldRequirement(f"{prefix}.{name}", text) for name, text in wanted.items() if text))
    )


def _metadata(event: EventDraft) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": event.name, "namespace": event.namespace}
    if event.annotations:
        metadata["annotations"] = dict(event.annotations)
    return metadata


def _series(event: EventDraft) -> dict[str, Any]:
    return {"count": event.count, "lastObservedTime": format_micro_time(event.last_at)}


def _reference(reference: ObjectReference) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(reference)
    return fields


def cut(text: str, limit: int) -> str:
    """Truncate a text to a number of UTF-8 bytes, without splitting a character."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore")


def reference_of(obj: object) -> ObjectReference:
    """Return the reference to the object of an event, or raise InvalidArgumentError or MalformedObjectError."""
    reference = _any_reference(obj)
    if not reference.name:
        raise MalformedObjectError("the object of an event must have a name", path="metadata.name")
    return reference


def _any_reference(obj: object) -> ObjectReference:
    if isinstance(obj, ObjectReference):
        return obj
    if isinstance(obj, Resource) or resource_type_of(type(obj)) is not None:
        return reference_to(obj)
    if isinstance(obj, Mapping):
        return reference_to(Resource.from_dict(cast("Mapping[str, Any]", obj)))
    raise InvalidArgumentError(
        "must be a Resource, an ObjectReference, a mapping, or an object of a @custom_resource class, "
        f"got {type(obj).__name__}.",
        argument="object",
    )
