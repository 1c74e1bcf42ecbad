"""What the server adds to a single object of a built-in kind when it is written, beyond its type's defaults.

    Pod         tolerations of nodes that are not ready, priority, QoS class      (admission, strategy)
    Node        the taint of a node that is not ready                             (admission)
    Service     address and node ports (``service_allocation``)                   (storage)
    Job         a selector and labels by the Job's uid                            (strategy)
    DaemonSet   the annotation that counts changes of its template                (conversion)

What is added here belongs to no field manager.

Source: Kubernetes plugin/pkg/admission/defaulttolerationseconds, priority, nodetaint;
pkg/registry/batch/job/strategy.go, pkg/apis/core/helper/qos.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from deltaloop.api import kinds
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.kinds.service_allocation import Taken, allocate, keep_allocated
from deltaloop.apiserver.core.kinds.validation.workloads import job_selector_errors
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.strategy import Stored
from deltaloop.schemas.faults import FieldError
from deltaloop.schemas.json_values import at, integer, items, mapping, text
from deltaloop.schemas.quantity import canonical_quantity

Fields = dict[str, Any]

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS: Final = 300
SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
_JOB_UID: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAME: Final = ("batch.kubernetes.io/job-name", "job-name")
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def prepare_new(served: ServedResource, created: Fields) -> None:
    """Fill in what a new object's author counts as having written, in place."""
    if (served.type.group, served.type.plural) == ("apps", "daemonsets"):
        metadata = created["metadata"]
        metadata["annotations"] = {**mapping(metadata.get("annotations")), TEMPLATE_GENERATION: "1"}


def finish_new(served: ServedResource, created: Fields, store: Stored, stamp: Stamp) -> list[FieldError]:
    """Fill in what the server adds to a new object, in place, and return what it asks for and cannot have."""
    finish = _NEW.get(served.type.group_resource) if not served.custom else None
    return finish(created, store, stamp) if finish is not None else []


def keep_given(served: ServedResource, before: Fields, after: Fields) -> None:
    """Carry over what the server has added, into the object of an update that does not have it, in place.

    Args:
        served: The resource.
        before: The object as it is.
        after: The object as sent, decoded and with its defaults.
    """
    if served.custom:
        return
    match served.type.group_resource:
        case "services":
            keep_allocated(mapping(before.get("spec")), mapping(after.get("spec")))
        case "pods":
            spec, old = mapping(after.get("spec")), mapping(before.get("spec"))
            _tolerate(spec)
            for name in ("priority", "preemptionPolicy"):
                if spec.get(name) is None and old.get(name) is not None:
                    spec[name] = old[name]
        case "daemonsets.apps":
            # As on its way through Go's type, where no annotation is no count: that differs, and is its writer's then.
            metadata = mapping(after.get("metadata"))
            metadata["annotations"] = {TEMPLATE_GENERATION: "0", **mapping(metadata.get("annotations"))}
        case _:
            pass


def finish_update(
    served: ServedResource, before: Fields, after: Fields, store: Stored, stamp: Stamp
) -> list[FieldError]:
    """Fill in what the server adds to a changed object, in place, and return what it asks for and cannot have."""
    if served.custom:
        return []
    if served.type.group_resource == "daemonsets.apps":
        _count_template(before, after)
    if served.type.group_resource != "services":
        return []
    spec, old = mapping(after.get("spec")), mapping(before.get("spec"))
    return allocate(spec, _taken(store), before=old, chance=stamp.chance)


def _taken(store: Stored) -> Taken:
    services = store.list(kinds.SERVICE.group_resource).items
    taken = Taken.by(mapping(service.to_dict().get("spec")) for service in services)
    taken.addresses.update(address.name for address in store.list("ipaddresses.networking.k8s.io").items)
    return taken


def _service(created: Fields, store: Stored, stamp: Stamp) -> list[FieldError]:
    return allocate(mapping(created.get("spec")), _taken(store), before={}, chance=stamp.chance)


def _pod(created: Fields, store: Stored, stamp: Stamp) -> list[FieldError]:
    spec = mapping(created.get("spec"))
    name = text(spec.get("priorityClassName"))
    value, policy = _priority(store, name)
    pod_name = text(at(created, "metadata", "name"))
    if value is None:
        raise failures.protected(kinds.POD, pod_name, f"no PriorityClass with name {name} was found")
    if spec.get("priority") not in (None, value):
        text_ = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name"
        )
        raise failures.protected(kinds.POD, pod_name, text_)
    spec["priority"] = value
    if spec.get("preemptionPolicy") is None:
        spec["preemptionPolicy"] = policy
    _tolerate(spec)
    status: Fields = {"phase": "Pending", "qosClass": qos_class(spec)}
    if items(spec.get("schedulingGates")):
        status["conditions"] = [{**_GATED, "lastProbeTime": None, "lastTransitionTime": stamp.time}]
    created["status"] = status
    return []


def _priority(store: Stored, name: str) -> tuple[int | None, str]:
    if name in SYSTEM_CLASSES:
        return SYSTEM_CLASSES[name], "PreemptLowerPriority"
    if name:
        found = store.get(_PRIORITY_CLASSES, name)
        if found is None:
            return None, ""
        fields = found.to_dict()
        return integer(fields.get("value")), text(fields.get("preemptionPolicy")) or "PreemptLowerPriority"
    return 0, "PreemptLowerPriority"


def _tolerate(spec: Fields) -> None:
    tolerations = items(spec.get("tolerations"))
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
        for key in _TOLERATED
        if not any(_covers(toleration, key) for toleration in tolerations)
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _covers(toleration: object, key: str) -> bool:
    return at(toleration, "key") in (key, None, "") and at(toleration, "effect") in ("NoExecute", None, "")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Return the class of a pod by what its containers request and are limited to."""
    containers = [*items(spec.get("containers")), *items(spec.get("initContainers"))]
    of_pod = mapping(spec.get("resources"))
    if of_pod.get("limits") or of_pod.get("requests"):
        containers = [{"resources": of_pod}]  # what the pod says for itself counts, and nothing else
    requested = limited = False
    guaranteed = True
    for container in containers:
        requests = _counted(at(container, "resources", "requests"))
        limits = _counted(at(container, "resources", "limits"))
        requested, limited = requested or bool(requests), limited or bool(limits)
        guaranteed = guaranteed and len(limits) == len(_COUNTED) and requests == limits
    if not requested and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


_COUNTED: Final = ("cpu", "memory")


def _counted(amounts: object) -> dict[str, str]:
    found = {name: canonical_quantity(str(at(amounts, name))) for name in _COUNTED if at(amounts, name) is not None}
    return {name: value for name, value in found.items() if value != "0"}


def _node(created: Fields, _store: Stored, _stamp: Stamp) -> list[FieldError]:
    spec = mapping(created.get("spec"))
    taints = items(spec.get("taints"))
    if not any(
        at(taint, "key") == _NOT_READY["key"] and at(taint, "effect") == _NOT_READY["effect"] for taint in taints
    ):
        created["spec"] = {**spec, "taints": [*taints, dict(_NOT_READY)]}
    return []


def _persistent_volume(created: Fields, _store: Stored, stamp: Stamp) -> list[FieldError]:
    created["status"] = {"phase": "Pending", "lastPhaseTransitionTime": stamp.time}
    return []


def _job(created: Fields, _store: Stored, _stamp: Stamp) -> list[FieldError]:
    spec, metadata = mapping(created.get("spec")), created["metadata"]
    if spec.get("manualSelector") is True:
        return [*job_selector_errors(created)]
    template = dict(mapping(spec.get("template")))
    template_metadata = dict(mapping(template.get("metadata")))
    labels = dict(mapping(template_metadata.get("labels")))
    labels |= dict.fromkeys(_JOB_UID, metadata["uid"])
    labels |= dict.fromkeys(_JOB_NAME, metadata.get("name", ""))
    template_metadata["labels"] = labels
    selector = dict(mapping(spec.get("selector")))
    selector["matchLabels"] = {**mapping(selector.get("matchLabels")), _JOB_UID[0]: metadata["uid"]}
    created["spec"] = {**spec, "selector": selector, "template": {**template, "metadata": template_metadata}}
    if metadata.get("labels", {}) == mapping(at(spec, "template", "metadata", "labels")):
        metadata["labels"] = dict(labels)
    return [*job_selector_errors(created)]


def _count_template(before: Fields, after: Fields) -> None:
    annotations = mapping(at(before, "metadata", "annotations"))
    count = text(annotations.get(TEMPLATE_GENERATION))
    if not count.isdecimal():
        return
    changed = at(before, "spec", "template") != at(after, "spec", "template")
    metadata = after["metadata"]
    shown = str(int(count) + changed)
    metadata["annotations"] = {**mapping(metadata.get("annotations")), TEMPLATE_GENERATION: shown}


_NEW: Final[Mapping[str, Callable[[Fields, Stored, Stamp], list[FieldError]]]] = {
    "jobs.batch": _job,
    "nodes": _node,
    "persistentvolumes": _persistent_volume,
    "pods": _pod,
    "services": _service,
}
