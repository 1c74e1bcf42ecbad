"""Strategies of namespaces, nodes, and classes of pods.

Source: Kubernetes pkg/api/node/util.go; Kubernetes pkg/registry/core/namespace/strategy.go, storage/storage.go;
Kubernetes pkg/registry/core/componentstatus, pkg/printers/internalversion/printers.go; Kubernetes
pkg/apis/scheduling/types.go, pkg/apis/scheduling/validation; Kubernetes pkg/registry/node/runtimeclass/strategy.go;
Kubernetes pkg/registry/core/node/strategy.go, pkg/apis/core/v1/conversion.go, pkg/apis/core/validation/validation.go;
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from deltaloop.api import kinds
from deltaloop.api.dns_names import label_value_problems
from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds.cells import NONE, UNKNOWN, condition
from deltaloop.apiserver.core.kinds.field_checks import (
    agree_on_first,
    duplicate_errors,
    each,
    network_errors,
    network_family,
    one_of_each_errors,
)
from deltaloop.apiserver.core.kinds.kubelet_verbs import proxy_of
from deltaloop.apiserver.core.kinds.pod_placement import taint_errors
from deltaloop.apiserver.core.kinds.resource_amounts import amount_errors, overhead_errors
from deltaloop.apiserver.core.strategy import Cell, Strategy, with_clients_metadata
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field, invalid_value

DEPRECATED_LABELS: Final[Mapping[str, str]] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
}
"""Deprecated labels and the end of the warning."""


def node_term_warnings(term: object, field: str, *, values: bool = False) -> Iterator[str]:
    """Yield warnings about deprecated labels in a term and, if ``values`` is set, about invalid label values."""
    for where, expression in each(term, "matchExpressions", field):
        key = text(expression.get("key"))
        if key in DEPRECATED_LABELS:
            yield f"{where}.key: {key} is {DEPRECATED_LABELS[key]}"
        for number, value in enumerate(texts(expression.get("values")) if values else ()):
            for problem in label_value_problems(value):
                yield f"{where}.values[{number}]: {value} is invalid, {problem}"


NAMESPACE_FINALIZER: Final = "kubernetes"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_SPEC_FINALIZERS: Final[dict[str, object]] = {"f:spec": {"f:finalizers": {}}}


def _label(namespace: dict[str, object]) -> None:
    metadata = mapping(namespace["metadata"])
    if metadata.get("name"):
        labels = {**mapping(metadata.get("labels")), _NAME_LABEL: metadata["name"]}
        namespace["metadata"] = {**metadata, "labels": labels}


def _prepare_new(namespace: dict[str, object]) -> None:
    finalizers = [*texts(at(namespace, "spec", "finalizers"))]
    if NAMESPACE_FINALIZER not in finalizers:
        finalizers.insert(0, NAMESPACE_FINALIZER)
    namespace["spec"] = {**mapping(namespace.get("spec")), "finalizers": finalizers}
    namespace["status"] = {"phase": "Active"}
    _label(namespace)


def _prepare_update(before: dict[str, object], after: dict[str, object]) -> None:
    finalizers = [*texts(at(before, "spec", "finalizers"))]
    after["spec"] = {**mapping(after.get("spec")), "finalizers": finalizers}
    _label(after)


def _prepare_status(_before: dict[str, object], after: dict[str, object]) -> None:
    _label(after)


def _finalize(current: dict[str, object], sent: dict[str, object]) -> dict[str, object]:
    metadata = with_clients_metadata(mapping(current["metadata"]), mapping(sent["metadata"]))
    spec = {**mapping(current.get("spec")), "finalizers": [*texts(at(sent, "spec", "finalizers"))]}
    result = {**current, "metadata": metadata, "spec": spec}
    _label(result)
    return result


def _mark(_before: dict[str, object], namespace: dict[str, object]) -> None:
    mapping(namespace["metadata"]).pop("deletionGracePeriodSeconds", None)
    namespace["status"] = {**mapping(namespace.get("status")), "phase": "Terminating"}


NAMESPACE: Final = Strategy(
    prepare_new=_prepare_new,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    parts={"finalize": _finalize},
    mark=_mark,
    is_held=lambda namespace: bool(at(namespace, "spec", "finalizers")),
    reset_fields={"": _SPEC_FINALIZERS},
)


def _cells(component: Mapping[str, object], _now: float) -> dict[str, object]:
    healthy = next((item for item in items(component.get("conditions")) if at(item, "type") == "Healthy"), None)
    status = "Healthy" if at(healthy, "status") == "True" else "Unhealthy"
    return {
        "Status": "Unknown" if healthy is None else status,
        "Message": text(at(healthy, "message")),
        "Error": text(at(healthy, "error")),
    }


def _reported(name: str, status: str, message: str) -> Resource:
    conditions = [{"type": "Healthy", "status": status, "message": message}]
    return Resource.from_json(msgspec.json.encode({"metadata": {"name": name}, "conditions": conditions}))


def _absent(name: str, port: int) -> Resource:
    refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    return _reported(name, "False", f'Get "https://127.0.0.1:{port}/healthz": {refused}')


COMPONENT_STATUS: Final = Strategy(
    reported=(_absent("controller-manager", 10_257), _reported("etcd-0", "True", "ok"), _absent("scheduler", 10_259)),
    timed_cells=_cells,
)


SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_HIGHEST: Final = 1_000_000_000


def _value_errors(place: Place) -> Iterator[SchemaError]:
    name = text(at(place.fields, "metadata", "name"))
    if name not in SYSTEM_CLASSES:
        if name.startswith("system-"):
            text_ = (
                "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"{name} is not a known system priority class"
            )
            yield forbidden_field("metadata.name", text_)
        elif integer(place.fields.get("value")) > _HIGHEST:
            yield forbidden_field("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    if integer(before.get("value")) != integer(after.get("value")):
        yield forbidden_field("value", "may not be changed in an update.")


def _priority_class_prepare_new(priority_class: dict[str, object]) -> None:
    mapping(priority_class["metadata"])["generation"] = 1  # updates do not increment it


PRIORITY_CLASS: Final = Strategy(
    prepare_new=_priority_class_prepare_new,
    checks={"priority": _value_errors},
    validate_update=_update_errors,
)


def _prepare_lease(lease: dict[str, object]) -> None:
    _prepare_changed_lease({}, lease)


def _prepare_changed_lease(before: dict[str, object], after: dict[str, object]) -> None:
    for name in ("strategy", "preferredHolder"):
        if at(before, "spec", name) is None:
            mapping(after.get("spec")).pop(name, None)


LEASE: Final = Strategy(prepare_new=_prepare_lease, prepare_update=_prepare_changed_lease)
"""Strategy without the feature gate ``CoordinatedLeaderElection``."""


def _warnings(runtime_class: Mapping[str, object]) -> Iterator[str]:
    for label in mapping(at(runtime_class, "scheduling", "nodeSelector")):
        if label in DEPRECATED_LABELS:
            yield f"scheduling.nodeSelector: {DEPRECATED_LABELS[label]}"


def _tolerations_errors(place: Place) -> Iterator[SchemaError]:
    seen: list[tuple[object, ...]] = []
    for number, toleration in enumerate(items(place.value)):
        key = tuple(text(at(toleration, name)) for name in ("key", "operator", "value", "effect"))
        if key in seen:
            yield duplicate(f"{place.path}[{number}]", toleration)
        seen.append(key)


def _overhead_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the fixed overhead of pods, which is checked like container limits."""
    return overhead_errors(Place(place.fields.get("podFixed"), place.path, place.name, place.holder))


RUNTIME_CLASS: Final = Strategy(
    checks={"class_overhead": _overhead_errors, "class_tolerations": _tolerations_errors},
    warn=_warnings,
)


def _status_defaults(status: dict[str, object]) -> None:
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(mapping(status["capacity"]))


def _network_errors(place: Place) -> Iterator[SchemaError]:
    ranges = texts(place.value)
    for number, network in enumerate(ranges):
        yield from network_errors(network, f"{place.path}[{number}]")
    yield from one_of_each_errors([*map(network_family, ranges)], place.path, ranges, "CIDR")


def _node_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old, new = mapping(before.get("spec")), mapping(after.get("spec"))
    if texts(old.get("podCIDRs")) and texts(old.get("podCIDRs")) != texts(new.get("podCIDRs")):
        yield forbidden_field("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if old.get("providerID") and old["providerID"] != new.get("providerID"):
        yield invalid_value("spec.providerID", None, "field cannot be modified once set")
    if (old.get("externalID") or "") != (new.get("externalID") or ""):
        yield forbidden_field("spec.externalID", "may not be updated")


def _amount_errors(node: Mapping[str, object]) -> Iterator[SchemaError]:
    for group in ("capacity", "allocatable"):
        for name, value in mapping(at(node, "status", group)).items():
            yield from amount_errors(name, value, f"status.{group}.{name}")


def _status_errors(_before: Mapping[str, object], node: Mapping[str, object]) -> Iterator[SchemaError]:
    yield from _amount_errors(node)
    yield from duplicate_errors(items(at(node, "status", "addresses")), "status.addresses")


def _node_warnings(node: Mapping[str, object]) -> Iterator[str]:
    if at(node, "spec", "externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _status(node: Mapping[str, object]) -> str:
    ready = condition(node, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if at(node, "spec", "unschedulable") is True else status


def _roles(node: Mapping[str, object]) -> str:
    labels, prefix = mapping(at(node, "metadata", "labels")), "node-role.kubernetes.io/"
    roles = {label.removeprefix(prefix) for label in labels if label.startswith(prefix)}
    return ",".join(sorted((roles | {text(labels.get("kubernetes.io/role"))}) - {""})) or NONE


def _kernel(node: Mapping[str, object]) -> str:
    info = at(node, "status", "nodeInfo")
    kernel, architecture = text(at(info, "kernelVersion")) or UNKNOWN, text(at(info, "architecture"))
    return f"{kernel} ({architecture})" if architecture else kernel


def _address(kind: str) -> Cell:
    def cell(node: Mapping[str, object]) -> str:
        addresses = items(at(node, "status", "addresses"))
        return next((text(at(item, "address")) for item in addresses if at(item, "type") == kind), NONE)

    return cell


NODE: Final = Strategy(
    defaults={
        "core.v1.NodeSpec": lambda spec: agree_on_first(spec, "podCIDR", "podCIDRs"),
        "core.v1.NodeStatus": _status_defaults,
    },
    checks={"networks": _network_errors, "node_taints": taint_errors},
    validate=_amount_errors,
    validate_update=_node_update_errors,
    validate_status=_status_errors,
    warn=_node_warnings,
    subresources=(proxy_of(kinds.NODE),),
    cells={
        "Status": _status,
        "Roles": _roles,
        "Internal-IP": _address("InternalIP"),
        "External-IP": _address("ExternalIP"),
        "Kernel-Version": _kernel,
    },
    status_when_new=True,  # kubelets register nodes together with their status
)
