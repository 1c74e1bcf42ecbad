"""HorizontalPodAutoscalers of v1 and v2: the same object; what v1 has no field for is JSON in annotations.

    v1                                   v2
    spec.targetCPUUtilizationPercentage  the first metric of the resource cpu with averageUtilization
    annotation .../metrics               all other metrics
    annotation .../current-metrics       status.currentMetrics, in full
    annotation .../conditions            status.conditions
    annotation .../behavior              spec.behavior, with the names of Go's fields

An annotation that cannot be read is dropped, as by the real server.

Source: Kubernetes pkg/apis/autoscaling/v1/conversion.go.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from deltaloop.schemas.json_values import at, is_mapping, items, mapping, text
from deltaloop.schemas.nesting import decode_json

Fields = dict[str, Any]

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS: Final = _PREFIX + "metrics"
_CURRENT: Final = _PREFIX + "current-metrics"
_CONDITIONS: Final = _PREFIX + "conditions"
_BEHAVIOR: Final = _PREFIX + "behavior"
_ANNOTATIONS: Final = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)
_SAME_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
DEFAULT_UTILIZATION: Final = 80

# v1's name of each part of a metric, and where v2 has it. ``source`` is of spec, ``status`` of status.
_SOURCE_PARTS: Final[dict[str, tuple[tuple[str, tuple[str, ...]], ...]]] = {
    "resource": (
        ("name", ("name",)),
        ("targetAverageUtilization", ("target", "averageUtilization")),
        ("targetAverageValue", ("target", "averageValue")),
    ),
    "containerResource": (
        ("name", ("name",)),
        ("targetAverageUtilization", ("target", "averageUtilization")),
        ("targetAverageValue", ("target", "averageValue")),
        ("container", ("container",)),
    ),
    "pods": (
        ("metricName", ("metric", "name")),
        ("targetAverageValue", ("target", "averageValue")),
        ("selector", ("metric", "selector")),
    ),
    "object": (
        ("target", ("describedObject",)),
        ("metricName", ("metric", "name")),
        ("targetValue", ("target", "value")),
        ("selector", ("metric", "selector")),
        ("averageValue", ("target", "averageValue")),
    ),
    "external": (
        ("metricName", ("metric", "name")),
        ("metricSelector", ("metric", "selector")),
        ("targetValue", ("target", "value")),
        ("targetAverageValue", ("target", "averageValue")),
    ),
}
_STATUS_PARTS: Final[dict[str, tuple[tuple[str, tuple[str, ...]], ...]]] = {
    "resource": (
        ("name", ("name",)),
        ("currentAverageUtilization", ("current", "averageUtilization")),
        ("currentAverageValue", ("current", "averageValue")),
    ),
    "containerResource": (
        ("name", ("name",)),
        ("currentAverageUtilization", ("current", "averageUtilization")),
        ("currentAverageValue", ("current", "averageValue")),
        ("container", ("container",)),
    ),
    "pods": (
        ("metricName", ("metric", "name")),
        ("currentAverageValue", ("current", "averageValue")),
        ("selector", ("metric", "selector")),
    ),
    "object": (
        ("target", ("describedObject",)),
        ("metricName", ("metric", "name")),
        ("currentValue", ("current", "value")),
        ("selector", ("metric", "selector")),
        ("averageValue", ("current", "averageValue")),
    ),
    "external": (
        ("metricName", ("metric", "name")),
        ("metricSelector", ("metric", "selector")),
        ("currentValue", ("current", "value")),
        ("currentAverageValue", ("current", "averageValue")),
    ),
}
# Quantities that v1 cannot leave out: where v2 has none, v1 says "0".
_ALWAYS_VALUES: Final = {
    ("object", "targetValue"),
    ("pods", "targetAverageValue"),
    ("object", "currentValue"),
    ("external", "currentValue"),
    ("pods", "currentAverageValue"),
    ("resource", "currentAverageValue"),
    ("containerResource", "currentAverageValue"),
}
_BEHAVIOR_NAMES: Final = (
    ("ScaleUp", "scaleUp"),
    ("ScaleDown", "scaleDown"),
)
_RULE_NAMES: Final = (
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
)
_CONDITION_NAMES: Final = ("type", "status", "lastTransitionTime", "reason", "message")
_POLICY_NAMES: Final = (("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds"))


def autoscaler_to_v1(fields: Fields) -> Fields:
    """Write an autoscaler of v2 as one of v1."""
    spec, status = mapping(fields.get("spec")), mapping(fields.get("status"))
    metrics = items(spec.get("metrics"))
    cpu = next((metric for metric in metrics if _is_cpu_use(metric)), None)
    others = [_metric_to_v1(metric, _SOURCE_PARTS) for metric in metrics if not _is_cpu_use(metric)]
    annotations = _plain_annotations(fields)
    current = items(status.get("currentMetrics"))
    if others:
        annotations[_METRICS] = _json(others)
    if current:
        annotations[_CURRENT] = _json([_metric_to_v1(metric, _STATUS_PARTS) for metric in current])
    if is_mapping(spec.get("behavior")):
        annotations[_BEHAVIOR] = _json(_behavior_to_go(mapping(spec["behavior"])))
    if items(status.get("conditions")):
        conditions = items(status["conditions"])
        annotations[_CONDITIONS] = _json([_in_order(condition, _CONDITION_NAMES) for condition in conditions])
    new_spec: Fields = {name: spec[name] for name in ("scaleTargetRef", "minReplicas", "maxReplicas") if name in spec}
    if cpu is not None:
        new_spec["targetCPUUtilizationPercentage"] = at(cpu, "resource", "target", "averageUtilization")
    new_status: Fields = {"currentReplicas": 0, "desiredReplicas": 0}
    new_status.update({name: status[name] for name in _SAME_STATUS if name in status})
    measured = next((metric for metric in current if at(metric, "resource", "name") == "cpu"), None)
    use = at(measured, "resource", "current", "averageUtilization")
    if use is not None:
        new_status["currentCPUUtilizationPercentage"] = use
    return {**_annotated(fields, annotations), "spec": new_spec, "status": new_status}


def autoscaler_to_v2(fields: Fields) -> Fields:
    """Write an autoscaler of v1 as one of v2."""
    spec, status = mapping(fields.get("spec")), mapping(fields.get("status"))
    annotations = mapping(at(fields, "metadata", "annotations"))
    new_spec: Fields = {name: spec[name] for name in ("scaleTargetRef", "minReplicas", "maxReplicas") if name in spec}
    metrics = [_metric_to_v2(metric, _SOURCE_PARTS) for metric in _read_list(annotations, _METRICS)]
    use = spec.get("targetCPUUtilizationPercentage")
    if use is not None or not metrics:
        metrics.append(_cpu_use(DEFAULT_UTILIZATION if use is None else use))
    new_spec["metrics"] = metrics
    behavior = _behavior_from_go(_read(annotations, _BEHAVIOR))
    if behavior:
        new_spec["behavior"] = behavior
    new_status: Fields = {name: status[name] for name in _SAME_STATUS if name in status}
    measured = status.get("currentCPUUtilizationPercentage")
    current = [_metric_to_v2(metric, _STATUS_PARTS) for metric in _read_list(annotations, _CURRENT)]
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


def _cpu_use(percent: object) -> Fields:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _metric_to_v1(metric: object, parts: dict[str, tuple[tuple[str, tuple[str, ...]], ...]]) -> Fields:
    result: Fields = {"type": at(metric, "type")}
    for field, names in parts.items():
        found = at(metric, field)
        if not is_mapping(found):
            continue
        values: Fields = {old: at(found, *way) for old, way in names}
        if is_mapping(values.get("target")):
            values["target"] = _in_order(values["target"], ("kind", "name", "apiVersion"))
        always = {old for old in values if (field, old) in _ALWAYS_VALUES}
        result[field] = {
            old: "0" if value is None else value for old, value in values.items() if value is not None or old in always
        }
    return result


def _metric_to_v2(metric: object, parts: dict[str, tuple[tuple[str, tuple[str, ...]], ...]]) -> Fields:
    result: Fields = {"type": at(metric, "type")}
    for field, names in parts.items():
        found = at(metric, field)
        if not is_mapping(found):
            continue
        made: Fields = {}
        for old, way in names:
            value = at(found, old)
            if value is None or (old == "targetValue" and value == "0" and at(found, "averageValue") is not None):
                continue
            holder = made
            for step in way[:-1]:
                holder = holder.setdefault(step, {})
            holder[way[-1]] = value
        if parts is _SOURCE_PARTS:
            made["target"] = {"type": _target_type(mapping(made.get("target"))), **mapping(made.get("target"))}
        result[field] = made
    return result


def _target_type(target: Fields) -> str:
    if "averageUtilization" in target:
        return "Utilization"
    return "Value" if "value" in target else "AverageValue"


def _in_order(fields: object, names: tuple[str, ...]) -> Fields:
    """Return fields in the order in which Go writes them."""
    return {name: at(fields, name) for name in names if at(fields, name) is not None}


def has_metrics_beside(annotations: Fields) -> bool:
    """Tell whether the annotations of an autoscaler of v1 hold metrics that can be read."""
    return bool(_read_list(annotations, _METRICS))


def _behavior_to_go(behavior: Fields) -> Fields:
    made: Fields = {}
    for go, name in _BEHAVIOR_NAMES:
        rules = behavior.get(name)
        made[go] = None
        if is_mapping(rules):
            made[go] = {there: rules.get(here) for there, here in _RULE_NAMES}
            policies = items(rules.get("policies"))
            if policies:
                made[go]["Policies"] = [{there: at(item, here) for there, here in _POLICY_NAMES} for item in policies]
    return made


def _behavior_from_go(made: object) -> Fields:
    behavior: Fields = {}
    for go, name in _BEHAVIOR_NAMES:
        rules = at(made, go)
        if is_mapping(rules):
            found = {here: rules.get(there) for there, here in _RULE_NAMES if rules.get(there) is not None}
            if "policies" in found:
                policies = items(found["policies"])
                found["policies"] = [{here: at(item, there) for there, here in _POLICY_NAMES} for item in policies]
            behavior[name] = found
    return behavior


def _plain_annotations(fields: Fields) -> Fields:
    annotations = mapping(at(fields, "metadata", "annotations"))
    return {name: value for name, value in annotations.items() if name not in _ANNOTATIONS}


def _annotated(fields: Fields, annotations: Fields) -> Fields:
    metadata = {name: value for name, value in mapping(fields.get("metadata")).items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**fields, "metadata": metadata}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _read(annotations: Fields, name: str) -> Any:
    try:
        return decode_json(text(annotations.get(name))) if name in annotations else None
    except msgspec.DecodeError:
        return None


def _read_list(annotations: Fields, name: str) -> list[Any]:
    return items(_read(annotations, name))
