"""LimitRanger: default requests and limits of containers, and minimum and maximum amounts.

Source: Kubernetes plugin/pkg/admission/limitranger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.pod_scheduling import CREATE, PODS, with_spec
from deltaloop.apiserver.core.kinds.resource_amounts import Amounts, amounts, pod_amounts
from deltaloop.schemas.quantity import amount

_RANGES: Final = kinds.LIMIT_RANGE.group_resource
_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CONTAINERS: Final = (("containers", "container"), ("initContainers", "init container"))


def _limits(attributes: AdmissionAttributes) -> Iterator[tuple[Mapping[str, object], ...]]:
    if at(attributes.before, "metadata", "deletionTimestamp") is None:
        for item in attributes.objects.list(_RANGES, prefix=f"{attributes.namespace}/").items:
            yield tuple(map(mapping, items(at(item.to_dict(), "spec", "limits"))))


def _fill(attributes: AdmissionAttributes) -> dict[str, object] | None:
    pod = attributes.after
    for limits in _limits(attributes):
        of_containers = [limit for limit in limits if limit.get("type") == "Container"]
        requests, bounds = Amounts(), Amounts()
        for limit in of_containers:
            requests |= amounts(limit.get("defaultRequest"))
            bounds |= amounts(limit.get("default"))
        pod = _filled(pod, requests, bounds) or pod
    return None if pod is attributes.after else pod


def _filled(pod: dict[str, object] | None, requests: Amounts, bounds: Amounts) -> dict[str, object] | None:
    said: list[str] = []
    changed: dict[str, object] = {}
    for field, words in _CONTAINERS:
        containers: list[object] = []
        for container in map(mapping, items(at(pod, "spec", field))):
            resources = mapping(container.get("resources"))
            for part, defaults, word in (("requests", requests, "request"), ("limits", bounds, "limit")):
                present = amounts(resources.get(part))
                missing = sorted(defaults.keys() - present)
                if missing:
                    resources = {**resources, part: {**present, **{name: defaults[name] for name in missing}}}
                    said.append(f"{', '.join(missing)} {word} for {words} {text(container.get('name'))}")
            containers.append({**container, "resources": resources})
        if containers:
            changed[field] = containers
    if not said:
        return None
    fields = with_spec(pod, **changed)
    metadata = mapping(fields.get("metadata"))
    annotations = {**mapping(metadata.get("annotations")), _ANNOTATION: f"LimitRanger plugin set: {'; '.join(said)}"}
    return {**fields, "metadata": {**metadata, "annotations": annotations}}


def _check(attributes: AdmissionAttributes) -> None:
    spec = mapping(at(attributes.after, "spec"))
    check = _pod_errors if attributes.served.type.group_resource == "pods" else _claim_errors
    for limits in _limits(attributes):
        found = [*dict.fromkeys(error for limit in limits for error in check(limit, spec))]
        if found:
            raise attributes.refused(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _pod_errors(limit: Mapping[str, object], spec: Mapping[str, object]) -> Iterator[str]:
    kind = text(limit.get("type"))
    if kind == "Container":
        for field, _ in _CONTAINERS:
            for container in items(spec.get(field)):
                resources = mapping(at(container, "resources"))
                yield from _bound_errors(limit, amounts(resources.get("requests")), amounts(resources.get("limits")))
    elif kind == "Pod":
        requests, bounds = (pod_amounts(spec, field, overhead=False) for field in ("requests", "limits"))
        yield from _bound_errors(limit, requests, bounds)


def _claim_errors(limit: Mapping[str, object], spec: Mapping[str, object]) -> Iterator[str]:
    if limit.get("type") != "PersistentVolumeClaim":
        return
    requests = amounts(at(spec, "resources", "requests"))
    yield from _least_errors(limit, requests, {})
    for name, most in sorted(amounts(limit.get("max")).items()):
        about = f"maximum {name} usage per PersistentVolumeClaim is {most}"
        if name not in requests:
            yield f"{about}.  No request is specified"
        elif amount(requests[name]) > amount(most):
            yield f"{about}, but request is {requests[name]}"


def _bound_errors(limit: Mapping[str, object], requests: Amounts, bounds: Amounts) -> Iterator[str]:
    kind = text(limit.get("type"))
    yield from _least_errors(limit, requests, bounds)
    for name, most in sorted(amounts(limit.get("max")).items()):
        about = f"maximum {name} usage per {kind} is {most}"
        if name not in bounds:
            yield f"{about}.  No limit is specified"
        elif amount(bounds[name]) > amount(most):
            yield f"{about}, but limit is {bounds[name]}"
        elif name in requests and amount(requests[name]) > amount(most):
            yield f"{about}, but request is {requests[name]}"
    for name, most in sorted(amounts(limit.get("maxLimitRequestRatio")).items()):
        about = f"{name} max limit to request ratio per {kind} is {most}, but"
        if not amount(requests.get(name, 0)):
            yield f"{about} no request is specified or request is 0"
        elif not amount(bounds.get(name, 0)):
            yield f"{about} no limit is specified or limit is 0"
        elif (ratio := amount(bounds[name]) / amount(requests[name])) > amount(most):
            yield f"{about} provided ratio is {float(ratio):.6f}"


def _least_errors(limit: Mapping[str, object], requests: Amounts, bounds: Amounts) -> Iterator[str]:
    for name, least in sorted(amounts(limit.get("min")).items()):
        about = f"minimum {name} usage per {text(limit.get('type'))} is {least}"
        if name not in requests:
            yield f"{about}.  No request is specified"
        elif amount(requests[name]) < amount(least):
            yield f"{about}, but request is {requests[name]}"
        elif name in bounds and amount(bounds[name]) < amount(least):
            yield f"{about}, but limit is {bounds[name]}"


_RESIZED: Final = frozenset({"pods/resize"})
_CLAIMS: Final = frozenset({kinds.PERSISTENT_VOLUME_CLAIM.group_resource})
LIMIT_RANGER: Final = (
    Plugin(operations=CREATE, resources=PODS, mutate=_fill, validate=_check),
    Plugin(operations=frozenset({"UPDATE"}), resources=_RESIZED, mutate=_fill, validate=_check),
    Plugin(operations=frozenset({"CREATE", "UPDATE"}), resources=_CLAIMS, validate=_check),
)
