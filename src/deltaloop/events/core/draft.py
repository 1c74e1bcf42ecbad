"""Events before they are sent, and the two Event APIs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from deltaloop.api.references import ObjectReference
from deltaloop.api.times import WallTime


class EventApi(StrEnum):
    """API for Events.

    The APIs merge repeated events by different rules. The server shows all Events in both APIs.

    Attributes:
        CORE_V1: ``v1``. Repeated events are counted, similar events are combined, and a spam filter limits the rest.
        EVENTS_V1: ``events.k8s.io/v1``. Repeated events become a series. If the server does not serve the API,
            deltaloop uses ``v1``.
    """

    CORE_V1 = "v1"
    EVENTS_V1 = "events.k8s.io/v1"


class EventDraft(Struct, frozen=True, kw_only=True):
    """Event before it is sent.

    Attributes:
        name: Name of the Event object.
        namespace: Namespace of the Event object.
        reference: Object that the event is about (``involvedObject``, ``regarding``).
        type: ``Normal`` or ``Warning``.
        reason: Reason as one word in CamelCase.
        message: Description for users.
        component: Reporting component, for example ``kubelet`` (``reportingComponent``, ``source.component``).
        instance: Reporting instance, for example the name of a pod (``reportingInstance``, ``source.host``).
        first_at: Wall-clock time of the first occurrence.
        last_at: Wall-clock time of the last occurrence.
        count: Number of occurrences.
        related: Related object.
        action: Action as one word in CamelCase.
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


class Correlated(Struct, frozen=True):
    """Event to send, by a patch if it exists on the server."""

    event: EventDraft
    is_update: bool
