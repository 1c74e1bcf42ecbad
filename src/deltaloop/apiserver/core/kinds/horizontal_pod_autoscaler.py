"""HorizontalPodAutoscaler: defaults, validation and table cells.

Source: Kubernetes pkg/apis/autoscaling/validation; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.apiserver.core.kinds.autoscaler_conversion import (
    DEFAULT_UTILIZATION,
    autoscaler_to_v1,
    autoscaler_to_v2,
    has_metrics_beside,
)
from deltaloop.apiserver.core.kinds.cells import NONE, UNKNOWN
from deltaloop.apiserver.core.kinds.resource_amounts import container_name_errors
from deltaloop.apiserver.core.strategy import Cell, Conversion, Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, not_supported, required

_SHOWN: Final = 2
# Field of each metric type.
_METRIC_PARTS: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_METRIC_ORDER: Final = ("object", "external", "pods", "resource", "containerResource")
# Targets of which a metric needs one. The error is reported for the last.
_AIMS: Final[Mapping[str, tuple[str, ...]]] = {
    "object": ("value", "averageValue"),
    "external": ("value", "averageValue"),
    "pods": ("averageValue",),
    "resource": ("averageValue", "averageUtilization"),
    "containerResource": ("averageValue", "averageUtilization"),
}
_SCALE_UP: Final[dict[str, object]] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Final[dict[str, object]] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_BY_USE: Final = ("Resource", "ContainerResource")


def _spec_defaults(spec: dict[str, object]) -> None:
    if not items(spec.get("metrics")):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if is_mapping(behavior):
        spec["behavior"] = {
            "scaleUp": {**_SCALE_UP, **mapping(behavior.get("scaleUp"))},
            "scaleDown": {**_SCALE_DOWN, **mapping(behavior.get("scaleDown"))},
        }


def _defaults_of_v1(autoscaler: dict[str, object]) -> None:
    spec = mapping(autoscaler.setdefault("spec", {}))
    unset = spec.get("targetCPUUtilizationPercentage") is None
    if unset and not has_metrics_beside(mapping(at(autoscaler, "metadata", "annotations"))):
        spec["targetCPUUtilizationPercentage"] = DEFAULT_UTILIZATION


def _replica_errors(place: Place) -> Iterator[SchemaError]:
    least, most = place.fields.get("minReplicas"), integer(place.fields.get("maxReplicas"))
    kinds = {text(at(metric, "type")) for metric in items(place.fields.get("metrics"))}
    if least == 0 and not kinds & {"Object", "External"}:
        text_ = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden_field(place.below("metrics"), text_)
    if isinstance(least, int) and most < least:
        yield invalid_value(place.below("maxReplicas"), most, "must be greater than or equal to `minReplicas`")


def _metric_errors(place: Place) -> Iterator[SchemaError]:
    kind = text(place.fields.get("type"))
    wanted = _METRIC_PARTS.get(kind, "")
    found = [part for part in _METRIC_ORDER if is_mapping(place.fields.get(part))]
    if not wanted:
        yield not_supported(place.below("type"), kind, _METRIC_PARTS)
    elif wanted not in found:
        yield required(place.below(wanted), "must populate information for the given metric source")
    if len(found) != 1:
        for part in found:
            if part != wanted:
                yield forbidden_field(place.below(part), "must populate the given metric source only")
    for part in found[:1]:
        yield from place.errors_below(part, place.fields[part])


def _aim_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the missing or excess targets of a metric."""
    target, path = mapping(place.fields.get("target")), place.below("target")
    given = [name for name in _AIMS[place.name] if target.get(name) is not None]
    if not given:
        yield required(f"{path}.{_AIMS[place.name][-1]}", "must set a target")
    if len(given) > 1 and place.name != "object":
        extra = "value" if place.name == "external" else "averageValue"
        yield forbidden_field(f"{path}.{extra}", "may not set two targets")


def _group_version_errors(place: Place) -> Iterator[SchemaError]:
    """Yield an error unless the API version of a target contains its group."""
    version = place.text
    if version.count("/") > 1:
        yield invalid_value(place.path, version, f"unexpected GroupVersion string: {version}")
    elif place.holder is not None and place.holder.name == "scaleTargetRef":
        kind, group = place.beside("kind"), version.partition("/")[0] if "/" in version else ""
        if not group and kind != "ReplicationController":
            yield invalid_value(place.path, version, "apiVersion must specify API group")


def _reference(autoscaler: Mapping[str, object]) -> str:
    target = at(autoscaler, "spec", "scaleTargetRef")
    return f"{text(at(target, 'kind'))}/{text(at(target, 'name'))}"


def _metrics(autoscaler: Mapping[str, object]) -> str:
    wanted, found = items(at(autoscaler, "spec", "metrics")), items(at(autoscaler, "status", "currentMetrics"))
    if not wanted:
        return NONE
    shown = [_metric(metric, found[place] if place < len(found) else None) for place, metric in enumerate(wanted)]
    more = f" + {len(shown) - _SHOWN} more..." if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more


def _metric(wanted: object, found: object) -> str:
    kind = text(at(wanted, "type"))
    field = _METRIC_PARTS.get(kind)
    if field is None:
        return "<unknown type>"
    target, current = at(wanted, field, "target"), at(found, field, "current")
    average, measured = at(target, "averageValue"), at(current, "averageValue")
    if kind in _BY_USE:
        name = text(at(wanted, field, "name"))
        if average is not None:
            return f"{name}: {_quantity(current, measured)}/{average}"
        return f"{name}: {_percent(at(current, 'averageUtilization'), UNKNOWN)}/" + _percent(
            at(target, "averageUtilization"), "<auto>"
        )
    if kind == "Pods":
        return f"{_quantity(current, measured)}/{'0' if average is None else average}"
    if average is not None:
        return f"{UNKNOWN if measured is None else measured}/{average} (avg)"
    value = at(target, "value")
    return f"{_quantity(current, at(current, 'value'))}/{'0' if value is None else value}"


def _quantity(status: object, value: object) -> str:
    if status is None:
        return UNKNOWN
    return "0" if value is None else str(value)


def _percent(value: object, missing: str) -> str:
    return missing if value is None else f"{integer(value)}%"


_CELLS: Final[Mapping[str, Cell]] = {
    "Reference": _reference,
    "Targets": _metrics,
}


def _metrics_of_v1(autoscaler: Mapping[str, object]) -> str:
    return _metrics(autoscaler_to_v2(dict(autoscaler)))


STRATEGY: Final = Strategy(
    defaults={"autoscaling.v2.HorizontalPodAutoscalerSpec": _spec_defaults},
    checks={
        "group_version": _group_version_errors,
        "metric_aim": _aim_errors,
        "metric_source": _metric_errors,
        "replicas_of_autoscaler": _replica_errors,
        "resource_of_container": lambda place: container_name_errors(place.text, place.path),
    },
    cells=_CELLS,
)


def _use_errors(place: Place) -> Iterator[SchemaError]:
    if integer(place.value) < 1:
        yield invalid_value("spec.metrics[0].resource.target.averageUtilization", place.value, "must be greater than 0")


V1: Final = Strategy(
    checks={"processor_use": _use_errors},
    defaults={"autoscaling.v1.HorizontalPodAutoscaler": _defaults_of_v1},
    conversion=Conversion(autoscaler_to_v1, autoscaler_to_v2),
    cells={**_CELLS, "Targets": _metrics_of_v1},
)
