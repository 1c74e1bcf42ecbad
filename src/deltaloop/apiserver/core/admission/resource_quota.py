"""Plugins for quotas and limit ranges.

No controller initializes ``status.hard`` and ``status.used`` here. A quota without a status has no effect.

Source: Kubernetes plugin/pkg/admission/limitranger; apiserver pkg/admission/plugin/resourcequota; Kubernetes
pkg/quota/v1/evaluator/core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.pod_scheduling import CREATE, PODS, with_spec
from deltaloop.apiserver.core.kinds.claim_spec import storage_class
from deltaloop.apiserver.core.kinds.resource_amounts import Amounts, amounts, plus, pod_amounts, qos_class
from deltaloop.apiserver.core.metadata.rules import selects
from deltaloop.apiserver.core.strategy import Writes
from deltaloop.apiserver.core.write_context import Effect
from deltaloop.schemas.quantity import amount

_RANGES: Final = kinds.LIMIT_RANGE.group_resource
_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CONTAINERS: Final = (("containers", "container"), ("initContainers", "init container"))


def _limits(attributes: AdmissionAttributes) -> Iterator[tuple[Mapping[str, object], ...]]:
    """Yield the limits of each LimitRange in the namespace, or nothing if the object is being deleted."""
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


_QUOTAS: Final = kinds.RESOURCE_QUOTA
_NAMESPACED_COUNTS: Final = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
_NOT_COUNTED: Final = frozenset({"events", "events.events.k8s.io", "bindings"})
_EXPLICIT: Final = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_BY_CLASS: Final = ".storageclass.storage.k8s.io/"


def _charge(attributes: AdmissionAttributes) -> Effect | None:
    if not attributes.namespace or attributes.served.storage in _NOT_COUNTED or not _is_counted(attributes):
        return None
    charged: list[dict[str, object]] = []
    usage = before = None
    for quota in attributes.objects.list(_QUOTAS.group_resource, prefix=f"{attributes.namespace}/").items:
        usage = _usage(attributes, attributes.after) if usage is None else usage
        fields = quota.to_dict()
        hard = amounts(at(fields, "status", "hard"))
        counted = [name for name in sorted(hard) if _matches(attributes, name)]
        if not counted or not _in_scope(attributes, fields, attributes.after):
            continue
        delta = usage
        _check_said(attributes, quota, counted)
        if attributes.before is not None and _in_scope(attributes, fields, attributes.before):
            before = _usage(attributes, attributes.before) if before is None else before
            delta = {name: value for name, value in plus(usage, before, times=-1).items() if amount(value) > 0}
        delta = {name: value for name, value in delta.items() if name in hard and amount(value)}
        used = amounts(at(fields, "status", "used"))
        after = plus({name: used.get(name, "0") for name in delta}, delta)
        over = sorted(name for name in delta if amount(after[name]) > amount(hard[name]))
        if over:
            raise attributes.refused(
                f"exceeded quota: {quota.name}, requested: {_shown(delta, over)}, used: {_shown(used, over)}, "
                f"limited: {_shown(hard, over)}"
            )
        if delta:
            status = {**mapping(fields.get("status")), "used": {**used, **after}}
            charged.append({**fields, "status": status})
    return _writing(attributes, charged) if charged else None


def _writing(attributes: AdmissionAttributes, charged: Iterable[dict[str, object]]) -> Effect:
    def write(writes: Writes) -> None:
        for fields in charged:
            writes.update_status(_QUOTAS, fields, attributes.context.moment)

    return write


def _is_counted(attributes: AdmissionAttributes) -> bool:
    if attributes.operation == "CREATE":
        return not attributes.subresource
    match attributes.resource:
        case "services" | "persistentvolumeclaims" | "pods/resize":
            return True
        case "pods":
            return _is_terminating(attributes.before) != _is_terminating(attributes.after)
        case _:
            return False


def _check_said(attributes: AdmissionAttributes, quota: Resource, counted: list[str]) -> None:
    """Reject pods without the amounts that the quota counts, and all objects if the quota's usage is unknown."""
    spec = mapping(at(attributes.after, "spec"))
    of_pod = mapping(spec.get("resources"))
    if attributes.served.storage == "pods" and not (of_pod.get("requests") or of_pod.get("limits")):
        missing: dict[str, set[str]] = {}
        for container in (*items(spec.get("containers")), *items(spec.get("initContainers"))):
            resources = mapping(at(container, "resources"))
            said = _compute(amounts(resources.get("requests")), amounts(resources.get("limits")))
            for name in counted:
                if name in _EXPLICIT and name not in said:
                    missing.setdefault(name, set()).add(text(at(container, "name")))
        if missing:
            told = "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
            raise attributes.refused(f"failed quota: {quota.name}: must specify {told}")
    used = mapping(at(quota.to_dict(), "status", "used"))
    if any(name not in used for name in counted):
        raise attributes.refused(f"status unknown for quota: {quota.name}, resources: {','.join(counted)}")


def _usage(attributes: AdmissionAttributes, fields: object) -> Amounts:
    kind = attributes.served.type
    count = {f"count/{attributes.served.storage}": "1"}
    spec = mapping(at(fields, "spec"))
    match kind.group_resource:
        case "pods":
            if at(fields, "status", "phase") in ("Succeeded", "Failed"):
                return count
            requests, limits = (pod_amounts(spec, field, overhead=True) for field in ("requests", "limits"))
            return {**count, "pods": "1", **_compute(requests, limits)}
        case "services":
            ports = items(spec.get("ports"))
            balanced = spec.get("type") == "LoadBalancer"
            if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
                ports = [port for port in ports if at(port, "nodePort")]
            nodes = len(ports) if balanced or spec.get("type") == "NodePort" else 0
            of_services = {"services.loadbalancers": str(int(balanced)), "services.nodeports": str(nodes)}
            return {**count, "services": "1", **of_services}
        case "persistentvolumeclaims":
            used = {"persistentvolumeclaims": "1"}
            size = at(spec, "resources", "requests", "storage")
            if size is not None:
                used["requests.storage"] = str(size)
            name = storage_class(mapping(fields))
            by_class = {f"{name}{_BY_CLASS}{field}": value for field, value in used.items()} if name else {}
            return {**count, **used, **by_class}
        case plural:
            return {**count, plural: "1"} if plural in _NAMESPACED_COUNTS else count


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    """Return the usage of a pod or container with the resource names of quotas."""
    result: Amounts = {}
    for name, value in requests.items():
        native = name in _COMPUTE or name.startswith("hugepages-")
        if native:
            result[name] = value
        if native or "/" in name:
            result[f"requests.{name}"] = value
    return result | {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}


def _matches(attributes: AdmissionAttributes, name: str) -> bool:
    storage = attributes.served.storage
    if name == f"count/{storage}":
        return True
    match attributes.served.type.group_resource:
        case "pods":
            plain = name.removeprefix("requests.")
            asked = plain in _COMPUTE or plain.startswith("hugepages-") or (plain != name and "/" in plain)
            return name == "pods" or asked or name.removeprefix("limits.") in _COMPUTE
        case "services":
            return name in ("services", "services.nodeports", "services.loadbalancers")
        case "persistentvolumeclaims":
            return name.rpartition(_BY_CLASS)[2] in ("persistentvolumeclaims", "requests.storage")
        case plural:
            return name == plural and plural in _NAMESPACED_COUNTS


def _in_scope(attributes: AdmissionAttributes, quota: Mapping[str, object], fields: object) -> bool:
    scopes = [{"scopeName": name, "operator": "Exists"} for name in texts(at(quota, "spec", "scopes"))]
    expressions = (*scopes, *items(at(quota, "spec", "scopeSelector", "matchExpressions")))
    is_pod = attributes.served.storage == "pods"
    return all(is_pod and _holds(mapping(expression), mapping(fields)) for expression in expressions)


def _holds(expression: Mapping[str, object], pod: Mapping[str, object]) -> bool:
    spec = mapping(pod.get("spec"))
    match expression.get("scopeName"):
        case "Terminating":
            return _is_terminating(pod)
        case "NotTerminating":
            return not _is_terminating(pod)
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "PriorityClass":
            name = text(spec.get("priorityClassName"))
            wanted = {**expression, "key": "PriorityClass"}
            return selects({"matchExpressions": [wanted]}, {"PriorityClass": name} if name else {})
        case "CrossNamespacePodAffinity":
            return any(_crosses(at(spec, "affinity", kind)) for kind in ("podAffinity", "podAntiAffinity"))
        case _:
            return False


def _crosses(affinity: object) -> bool:
    weighted = items(at(affinity, "preferredDuringSchedulingIgnoredDuringExecution"))
    terms = [*items(at(affinity, "requiredDuringSchedulingIgnoredDuringExecution"))]
    terms += [at(term, "podAffinityTerm") for term in weighted]
    return any(items(at(term, "namespaces")) or at(term, "namespaceSelector") is not None for term in terms)


def _is_terminating(pod: object) -> bool:
    return at(pod, "spec", "activeDeadlineSeconds") is not None


def _shown(values: Mapping[str, str], names: Iterable[str]) -> str:
    return ",".join(f"{name}={values.get(name, '0')}" for name in names)


RESOURCE_QUOTA: Final = Plugin(operations=frozenset({"CREATE", "UPDATE"}), validate=_charge)
