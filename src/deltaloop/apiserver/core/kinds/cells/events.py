"""Cells of events, in either of their two forms.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deltaloop.apiserver.core.kinds.cells.shared import Cells, Object
from deltaloop.apiserver.core.kinds.human_duration import age
from deltaloop.schemas.json_values import at, integer, is_mapping, mapping, text


def _event(obj: Object, now: float) -> dict[str, Any]:
    involved = mapping(at(obj, "involvedObject") or at(obj, "regarding"))
    series, source = at(obj, "series"), at(obj, "source") or at(obj, "deprecatedSource")
    first = at(obj, "firstTimestamp") or at(obj, "deprecatedFirstTimestamp") or at(obj, "eventTime")
    last = at(obj, "lastTimestamp") or at(obj, "deprecatedLastTimestamp") or first
    count = integer(at(obj, "count")) or integer(at(obj, "deprecatedCount")) or 1
    if is_mapping(series):
        last, count = at(series, "lastObservedTime"), integer(at(series, "count"))
    kind, name = text(involved.get("kind")).lower(), text(involved.get("name"))
    component = text(at(source, "component")) or text(at(obj, "reportingComponent") or at(obj, "reportingController"))
    host = text(at(source, "host")) or text(at(obj, "reportingInstance"))
    return {
        "Last Seen": age(last, now),
        "Type": text(at(obj, "type")),
        "Reason": text(at(obj, "reason")),
        "Object": f"{kind}/{name}" if name else kind,
        "Subobject": text(involved.get("fieldPath")),
        "Source": f"{component}, {host}" if host else component,
        "Message": text(at(obj, "message") or at(obj, "note")).strip(),
        "First Seen": age(first, now),
        "Count": count,
    }


CELLS: Final[Mapping[tuple[str, str], Cells]] = {("", "Event"): _event, ("events.k8s.io", "Event"): _event}
