"""Events of the core group, which is the stored form, and of events.k8s.io with stricter validation.

Source: Kubernetes pkg/apis/events/v1/conversion.go, pkg/apis/core/validation/events.go;
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, mapping, text
from deltaloop.apiserver.core.kinds.cells import age
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.apiserver.core.strategy import Conversion, Strategy
from deltaloop.schemas.checking import IMMUTABLE
from deltaloop.schemas.field_errors import SchemaError, invalid_value, required

# Maximum lengths in events with an ``eventTime``: field, name in messages, bytes.
_LENGTHS: Final = (
    ("reportingInstance", "reportingInstance", 128),
    ("action", "action", 128),
    ("reason", "reason", 128),
    ("note", "message", 1024),
    ("message", "message", 1024),
)
_NEEDED: Final = ("reportingInstance", "action", "reason")
# Fields of events.k8s.io that only old events have, and their names in messages.
_DEPRECATED: Final = (
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("deprecatedSource", "source"),
)
_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
# Fields that Go always writes.
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
_NAMES_BACK: Final = {stored: served for served, stored in _NAMES.items()}
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


def _renamed(fields: dict[str, object], names: Mapping[str, str], always: Mapping[str, object]) -> dict[str, object]:
    """Rename the fields of an event, and add the fields that are always written."""
    result = {names.get(name, name): value for name, value in fields.items() if value not in (None, "", {}, 0)}
    return result | {name: zero for name, zero in always.items() if name not in result}


def event_to_core(event: dict[str, object]) -> dict[str, object]:
    return _renamed(event, _NAMES, ALWAYS_IN_CORE)


def event_from_core(event: dict[str, object]) -> dict[str, object]:
    return _renamed(event, _NAMES_BACK, ALWAYS_IN_EVENTS)


def _new_errors(event: Mapping[str, object]) -> Iterator[SchemaError]:
    return _common_errors(event, mapping(event.get("involvedObject")), "reportingComponent")


def _new_errors_of_events(event: Mapping[str, object]) -> Iterator[SchemaError]:
    yield from _common_errors(event, mapping(event.get("regarding")), "reportingController")
    if event.get("eventTime") is None:
        yield required("eventTime")
    yield from _series_errors(event)
    kind = text(event.get("type"))
    if kind not in ("Normal", "Warning"):
        yield invalid_value("type", "", "has invalid value: " + kind)
    for field, told in _DEPRECATED:
        if event.get(field):
            yield invalid_value(told, "", "needs to be unset")


def _series_errors(event: Mapping[str, object]) -> Iterator[SchemaError]:
    series = event.get("series")
    if is_mapping(series):
        if integer(series.get("count")) < 2:
            yield invalid_value("series.count", "", "should be at least 2")
        if series.get("lastObservedTime") is None:
            yield required("series.lastObservedTime")


def _common_errors(event: Mapping[str, object], about: Mapping[str, object], controller: str) -> Iterator[SchemaError]:
    namespace, place = text(at(event, "metadata", "namespace")), text(about.get("namespace"))
    if event.get("eventTime") is None:
        # Events about cluster-scoped objects belong to the namespace ``default``.
        if place != namespace and not (not place and namespace == "default"):
            yield invalid_value("involvedObject.namespace", place, "does not match event.namespace")
        return
    if not place and namespace not in ("default", "kube-system"):
        yield invalid_value("involvedObject.namespace", place, "does not match event.namespace")
    if not event.get(controller):
        yield required(controller)
    yield from qualified_name_errors(text(event.get(controller)), controller)
    yield from (required(field) for field in _NEEDED if not event.get(field))
    for field, told, longest in _LENGTHS:
        if len(text(event.get(field)).encode()) > longest:
            yield invalid_value(told, "", f"can have at most {longest} characters")


def _update_errors(_before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    namespace = text(at(after, "metadata", "namespace"))
    place = text(at(after, "involvedObject", "namespace") or at(after, "regarding", "namespace"))
    has_time = after.get("eventTime") is not None
    if place != namespace and not (not place and namespace == "default") and not (has_time and place):
        yield invalid_value("involvedObject.namespace", place, "does not match event.namespace")


def _update_errors_of_events(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    yield from _update_errors(before, after)
    yield from _series_errors(after)
    for field, told in _KEPT:
        if (before.get(field) or None) != (after.get(field) or None):
            yield invalid_value(told, after.get(field), IMMUTABLE)


def _cells(event: Mapping[str, object], now: float) -> dict[str, object]:
    involved = mapping(event.get("involvedObject") or event.get("regarding"))
    series, source = event.get("series"), event.get("source") or event.get("deprecatedSource")
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or first
    count = integer(event.get("count")) or integer(event.get("deprecatedCount")) or 1
    if is_mapping(series):
        last, count = series.get("lastObservedTime"), integer(series.get("count"))
    kind, name = text(involved.get("kind")).lower(), text(involved.get("name"))
    component = text(at(source, "component") or event.get("reportingComponent") or event.get("reportingController"))
    host = text(at(source, "host") or event.get("reportingInstance"))
    return {
        "Last Seen": age(last, now),
        "Type": text(event.get("type")),
        "Reason": text(event.get("reason")),
        "Object": f"{kind}/{name}" if name else kind,
        "Subobject": text(involved.get("fieldPath")),
        "Source": f"{component}, {host}" if host else component,
        "Message": text(event.get("message") or event.get("note")).strip(),
        "First Seen": age(first, now),
        "Count": count,
    }


STRATEGY: Final = Strategy(
    validate_new=_new_errors, validate_update=_update_errors, dependents="ignored", timed_cells=_cells
)
OF_EVENTS: Final = Strategy(
    conversion=Conversion(event_from_core, event_to_core),
    validate_new=_new_errors_of_events,
    validate_update=_update_errors_of_events,
    dependents="ignored",
    timed_cells=_cells,
)
