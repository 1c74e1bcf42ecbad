"""Cells of HorizontalPodAutoscalers: what is measured beside what is aimed at.

The cells are those of v2, in which autoscalers are stored.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deltaloop.apiserver.core.builtin.autoscaler_conversion import autoscaler_to_v2
from deltaloop.apiserver.core.kinds.cells.shared import NONE, UNSET, Cells, Object
from deltaloop.schemas.json_values import at, integer, items, text

_SHOWN: Final = 2
_UNKNOWN: Final = "<unknown>"
# Where the parts of each type of metric are.
_FIELDS: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_BY_USE: Final = ("Resource", "ContainerResource")


def _autoscaler(obj: Object, _: float) -> dict[str, Any]:
    if obj.get("apiVersion") == "autoscaling/v1":
        obj = autoscaler_to_v2(dict(obj))
    spec, status = at(obj, "spec"), at(obj, "status")
    least = at(spec, "minReplicas")
    target = at(spec, "scaleTargetRef")
    return {
        "Reference": f"{text(at(target, 'kind'))}/{text(at(target, 'name'))}",
        "Targets": _metrics(items(at(spec, "metrics")), items(at(status, "currentMetrics"))),
        "MinPods": UNSET if least is None else str(integer(least)),
        "MaxPods": integer(at(spec, "maxReplicas")),
        "Replicas": integer(at(status, "currentReplicas")),
    }


def _metrics(wanted: list[Any], found: list[Any]) -> str:
    if not wanted:
        return NONE
    shown = [_metric(metric, found[place] if place < len(found) else None) for place, metric in enumerate(wanted)]
    more = f" + {len(shown) - _SHOWN} more..." if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more


def _metric(wanted: object, found: object) -> str:
    kind = text(at(wanted, "type"))
    field = _FIELDS.get(kind)
    if field is None:
        return "<unknown type>"
    target, current = at(wanted, field, "target"), at(found, field, "current")
    average, measured = at(target, "averageValue"), at(current, "averageValue")
    if kind in _BY_USE:
        name = text(at(wanted, field, "name"))
        if average is not None:
            return f"{name}: {_quantity(current, measured)}/{average}"
        return f"{name}: {_percent(at(current, 'averageUtilization'), _UNKNOWN)}/" + _percent(
            at(target, "averageUtilization"), "<auto>"
        )
    if kind == "Pods":
        return f"{_quantity(current, measured)}/{'0' if average is None else average}"
    if average is not None:
        return f"{_UNKNOWN if measured is None else measured}/{average} (avg)"
    value = at(target, "value")
    return f"{_quantity(current, at(current, 'value'))}/{'0' if value is None else value}"


def _quantity(status: object, value: object) -> str:
    """Write what was measured; a status without the value says that it is none."""
    if status is None:
        return _UNKNOWN
    return "0" if value is None else str(value)


def _percent(value: object, missing: str) -> str:
    return missing if value is None else f"{integer(value)}%"


CELLS: Final[Mapping[tuple[str, str], Cells]] = {("autoscaling", "HorizontalPodAutoscaler"): _autoscaler}
