"""An event on its way to the server, and which API it is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from deltaloop.api.references import ObjectReference
from deltaloop.api.times import WallTime


class EventApi(StrEnum):
    """The two APIs for Events.

    They merge repeats by different rules; the server shows both in either.

    Attributes:
        CORE_V1: ``v1``; repeats are counted and similar ones combined, and a spam filter limits the rest.
        EVENTS_V1: ``events.k8s.io/v1``; repeats become a series. Where it is not served, ``v1`` is used.
    """

    CORE_V1 = "v1"
    EVENTS_V1 = "events.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """An event on its way to the server.

    Attributes:
        name: Name of the Event object.
        namespace: Namespace of the Event object.
        reference: The object that the event is about (``involvedObject``, ``regarding``).
        type: ``Normal`` or ``Warning``.
        reason: Why, as one word in CamelCase.
        message: What happened, for people.
        component: The reporting component, such as ``kubelet`` (``reportingComponent``, ``source.component``).
        instance: The reporting instance, such as a pod's name (``reportingInstance``, ``source.host``).
        first_at: When it happened first, by the wall clock.
        last_at: When it happened last.
        count: How often the event has happened.
        related: Another object that has to do with it.
        action: What was done or tried, as one word in CamelCase.
        annotations: Annotations of the Event object.
    """

    name: str
    namespace: str
    reference: ObjectReference
    type: str
    reason: str
    message: str
    component: str
    instance: str
    first_at: WallTime
    last_at: WallTime
    count: int = 1
    related: ObjectReference | None = None
    action: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Correlated:
    """An event to send.

    Attributes:
        event: The event as it should stand on the server.
        is_update: Whether it stands there already, and what changed is to be patched.
    """

    event: EventDraft
    is_update: bool
