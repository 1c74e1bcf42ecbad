"""Strategies of horizontal pod autoscalers, and the conversion of their versions.

Source: Kubernetes pkg/apis/autoscaling/v1/conversion.go; Kubernetes pkg/apis/autoscaling/validation;
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.apiserver.core.kinds.cells import NONE, UNKNOWN
from deltaloop.apiserver.core.kinds.resource_amounts import container_name_errors
from deltaloop.apiserver.core.strategy import Cell, Conversion, Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, not_supported, required
from deltaloop.schemas.nesting import decode_json

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS: Final = _PREFIX + "metrics"
_CURRENT: Final = _PREFIX + "current-metrics"
_CONDITIONS: Final = _PREFIX + "conditions"
_BEHAVIOR: Final = _PREFIX + "behavior"
_ANNOTATIONS: Final = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)
_SAME_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
DEFAULT_UTILIZATION: Final = 80

# Field names of v1 and paths in v2, by metric type; * is "target" in the spec and "current" in the status.
_AVERAGES: Final = {"*AverageUtilization": "*.averageUtilization", "*AverageValue": "*.averageValue"}
_PARTS: Final[Mapping[str, Mapping[str, str]]] = {
    "resource": {"name": "name", **_AVERAGES},
    "containerResource": {"name": "name", **_AVERAGES, "container": "container"},
    "pods": {"metricName": "metric.name", "*AverageValue": "*.averageValue", "selector": "metric.selector"},
    "object": {
        "target": "describedObject",
        "metricName": "metric.name",
        "*Value": "*.value",
        "selector": "metric.selector",
        "averageValue": "*.averageValue",
    },
    "external": {
        "metricName": "metric.name",
        "metricSelector": "metric.selector",
        "*Value": "*.value",
        "*AverageValue": "*.averageValue",
    },
}
# Required quantities of v1, which are "0" if v2 has no value.
_ALWAYS_VALUES: Final = {
    ("object", "targetValue"),
    ("pods", "targetAverageValue"),
    ("object", "currentValue"),
    ("external", "currentValue"),
    ("pods", "currentAverageValue"),
    ("resource", "currentAverageValue"),
    ("containerResource", "currentAverageValue"),
}
_DIRECTIONS: Final = ("scaleUp", "scaleDown")
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY: Final = ("type", "value", "periodSeconds")
_CONDITION_NAMES: Final = ("type", "status", "lastTransitionTime", "reason", "message")
_KEPT: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")


def autoscaler_to_v1(fields: dict[str, object]) -> dict[str, object]:
    spec, status = mapping(fields.get("spec")), mapping(fields.get("status"))
    metrics = items(spec.get("metrics"))
    cpu = next((metric for metric in metrics if _is_cpu_use(metric)), None)
    others = [_metric_to_v1(metric, "target") for metric in metrics if not _is_cpu_use(metric)]
    annotations = _plain_annotations(fields)
    current = items(status.get("currentMetrics"))
    if others:
        annotations[_METRICS] = _json(others)
    if current:
        annotations[_CURRENT] = _json([_metric_to_v1(metric, "current") for metric in current])
    if is_mapping(spec.get("behavior")):
        annotations[_BEHAVIOR] = _json(_behavior_to_go(mapping(spec["behavior"])))
    if items(status.get("conditions")):
        conditions = items(status["conditions"])
        annotations[_CONDITIONS] = _json([_in_order(condition, _CONDITION_NAMES) for condition in conditions])
    new_spec: dict[str, object] = {name: spec[name] for name in _KEPT if name in spec}
    if cpu is not None:
        new_spec["targetCPUUtilizationPercentage"] = at(cpu, "resource", "target", "averageUtilization")
    new_status: dict[str, object] = {"currentReplicas": 0, "desiredReplicas": 0}
    new_status.update({name: status[name] for name in _SAME_STATUS if name in status})
    measured = next((metric for metric in current if at(metric, "resource", "name") == "cpu"), None)
    use = at(measured, "resource", "current", "averageUtilization")
    if use is not None:
        new_status["currentCPUUtilizationPercentage"] = use
    return {**_annotated(fields, annotations), "spec": new_spec, "status": new_status}


def autoscaler_to_v2(fields: dict[str, object]) -> dict[str, object]:
    spec, status = mapping(fields.get("spec")), mapping(fields.get("status"))
    annotations = mapping(at(fields, "metadata", "annotations"))
    new_spec: dict[str, object] = {name: spec[name] for name in _KEPT if name in spec}
    metrics = [_metric_to_v2(metric, "target") for metric in _read_list(annotations, _METRICS)]
    use = spec.get("targetCPUUtilizationPercentage")
    if use is not None or not metrics:
        metrics.append(_cpu_use(DEFAULT_UTILIZATION if use is None else use))
    new_spec["metrics"] = metrics
    behavior = _behavior_from_go(_read(annotations, _BEHAVIOR))
    if behavior:
        new_spec["behavior"] = behavior
    new_status: dict[str, object] = {name: status[name] for name in _SAME_STATUS if name in status}
    measured = status.get("currentCPUUtilizationPercentage")
    current = [_metric_to_v2(metric, "current") for metric in _read_list(annotations, _CURRENT)]
    if not current and measured is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": measured}}
        current = [{"type": "Resource", "resource": resource}]
    new_status["currentMetrics"] = current or None
    conditions = _read_list(annotations, _CONDITIONS)
    if conditions:
        new_status["conditions"] = conditions
    if not new_status.get("currentReplicas"):
        new_status.pop("currentReplicas", None)
    new_status.setdefault("desiredReplicas", 0)
    return {**_annotated(fields, _plain_annotations(fields)), "spec": new_spec, "status": new_status}


def _is_cpu_use(metric: object) -> bool:
    use = at(metric, "resource", "target", "averageUtilization")
    return at(metric, "type") == "Resource" and at(metric, "resource", "name") == "cpu" and use is not None


def _cpu_use(percent: object) -> dict[str, object]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _ways(kind: str, side: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the v1 name and the v2 path of each field of a metric."""
    for name, way in _PARTS[kind].items():
        yield name.replace("*", side), way.replace("*", side).split(".")


def _metric_to_v1(metric: object, side: str) -> dict[str, object]:
    result: dict[str, object] = {"type": at(metric, "type")}
    for kind in _PARTS:
        if not is_mapping(at(metric, kind)):
            continue
        values: dict[str, object] = {}
        for old, way in _ways(kind, side):
            value = at(metric, kind, *way)
            if old == "target" and is_mapping(value):
                value = _in_order(value, ("kind", "name", "apiVersion"))
            if value is not None or (kind, old) in _ALWAYS_VALUES:
                values[old] = "0" if value is None else value
        result[kind] = values
    return result


def _metric_to_v2(metric: object, side: str) -> dict[str, object]:
    result: dict[str, object] = {"type": at(metric, "type")}
    for kind in _PARTS:
        found = at(metric, kind)
        if not is_mapping(found):
            continue
        made: dict[str, object] = {}
        for old, way in _ways(kind, side):
            value = found.get(old)
            if value is None or (old == "targetValue" and value == "0" and found.get("averageValue") is not None):
                continue
            *above, last = way
            holder = mapping(made.setdefault(above[0], {})) if above else made
            holder[last] = value
        if side == "target":
            made["target"] = {"type": _target_type(mapping(made.get("target"))), **mapping(made.get("target"))}
        result[kind] = made
    return result


def _target_type(target: dict[str, object]) -> str:
    if "averageUtilization" in target:
        return "Utilization"
    return "Value" if "value" in target else "AverageValue"


def _in_order(fields: object, names: tuple[str, ...]) -> dict[str, object]:
    return {name: at(fields, name) for name in names if at(fields, name) is not None}


def has_metrics_beside(annotations: dict[str, object]) -> bool:
    return bool(_read_list(annotations, _METRICS))


def _go(name: str) -> str:
    return name[0].upper() + name[1:]


def _behavior_to_go(behavior: dict[str, object]) -> dict[str, object]:
    return {_go(name): _rules_to_go(behavior.get(name)) for name in _DIRECTIONS}


def _rules_to_go(rules: object) -> dict[str, object] | None:
    if not is_mapping(rules):
        return None
    made = {_go(name): rules.get(name) for name in _RULES}
    if policies := items(rules.get("policies")):
        made["Policies"] = [{_go(name): at(policy, name) for name in _POLICY} for policy in policies]
    return made


def _behavior_from_go(made: object) -> dict[str, object]:
    behavior: dict[str, object] = {}
    for direction in _DIRECTIONS:
        rules = at(made, _go(direction))
        if is_mapping(rules):
            found = {name: rules[_go(name)] for name in _RULES if rules.get(_go(name)) is not None}
            if "policies" in found:
                policies = items(found["policies"])
                found["policies"] = [{name: at(policy, _go(name)) for name in _POLICY} for policy in policies]
            behavior[direction] = found
    return behavior


def _plain_annotations(fields: dict[str, object]) -> dict[str, object]:
    annotations = mapping(at(fields, "metadata", "annotations"))
    return {name: value for name, value in annotations.items() if name not in _ANNOTATIONS}


def _annotated(fields: dict[str, object], annotations: dict[str, object]) -> dict[str, object]:
    metadata = {name: value for name, value in mapping(fields.get("metadata")).items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**fields, "metadata": metadata}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _read(annotations: dict[str, object], name: str) -> object:
    try:
        return decode_json(text(annotations.get(name))) if name in annotations else None
    except msgspec.DecodeError:
        return None


def _read_list(annotations: dict[str, object], name: str) -> list[object]:
    return items(_read(annotations, name))


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
# Alternative targets of a metric. The error is reported for the last.
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
        spec["metrics"] = [_cpu_use(DEFAULT_UTILIZATION)]
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
    target, path = mapping(place.fields.get("target")), place.below("target")
    given = [name for name in _AIMS[place.name] if target.get(name) is not None]
    if not given:
        yield required(f"{path}.{_AIMS[place.name][-1]}", "must set a target")
    if len(given) > 1 and place.name != "object":
        extra = "value" if place.name == "external" else "averageValue"
        yield forbidden_field(f"{path}.{extra}", "may not set two targets")


def _group_version_errors(place: Place) -> Iterator[SchemaError]:
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


HORIZONTAL_POD_AUTOSCALER: Final = Strategy(
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
