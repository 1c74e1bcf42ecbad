"""Kinds that share their objects with another kind or version, and the way from one form to the other.

    served                  stored as               what differs
    events.k8s.io/v1 Event  v1 Event                names of fields
    autoscaling/v1 HPA      autoscaling/v2 HPA      what v1 has no field for is in annotations

An object is read, checked, and owned field by field in the form that is served; the store has the other one.

Source: Kubernetes pkg/apis/events/v1/conversion.go; for autoscalers see ``autoscaler_conversion``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from deltaloop.apiserver.core.builtin.autoscaler_conversion import autoscaler_to_v1, autoscaler_to_v2

Fields = dict[str, Any]

_EVENT_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
# What Go writes where nothing is set.
ALWAYS_IN_CORE: Final[Mapping[str, object]] = {
    "eventTime": None,
    "firstTimestamp": None,
    "involvedObject": {},
    "lastTimestamp": None,
    "reportingComponent": "",
    "reportingInstance": "",
    "source": {},
}
ALWAYS_IN_EVENTS: Final[Mapping[str, object]] = {
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
    "deprecatedSource": {},
    "eventTime": None,
    "regarding": {},
}
_EVENT_NAMES_BACK: Final = {stored: served for served, stored in _EVENT_NAMES.items()}


@final
@dataclass(frozen=True, slots=True)
class Conversion:
    """The two ways between the form that is served and the one that is stored; neither changes its argument."""

    from_stored: Callable[[Fields], Fields]
    to_stored: Callable[[Fields], Fields]


def _renamed(fields: Fields, names: Mapping[str, str], always: Mapping[str, object]) -> Fields:
    result = {names.get(name, name): value for name, value in fields.items() if value not in (None, "", {}, 0)}
    result.update({name: empty_value for name, empty_value in always.items() if name not in result})
    return result


def event_to_core(fields: Fields) -> Fields:
    """Write an event of events.k8s.io as one of the core group."""
    return _renamed(fields, _EVENT_NAMES, ALWAYS_IN_CORE)


def event_from_core(fields: Fields) -> Fields:
    """Write an event of the core group as one of events.k8s.io."""
    return _renamed(fields, _EVENT_NAMES_BACK, ALWAYS_IN_EVENTS)


CONVERSIONS: Final[Mapping[tuple[str, str], Conversion]] = {
    ("events.k8s.io/v1", "Event"): Conversion(event_from_core, event_to_core),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): Conversion(autoscaler_to_v1, autoscaler_to_v2),
}
"""By the API version and kind that are served; what is not here is stored as it is served."""
