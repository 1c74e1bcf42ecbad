"""Strategies of pods and bindings.

A binding sets the node and the condition ``PodScheduled``, without field manager and without a new generation. Its
labels and annotations are merged into the pod. A POST to the collection ``bindings`` binds the pod of that name.

Source: Kubernetes pkg/apis/core/v1/defaults.go, conversion.go; pkg/features/kube_features.go;
github.com/distribution/reference; Kubernetes pkg/printers/internalversion/printers.go ``printPod``; Kubernetes
pkg/registry/core/pod/storage/storage.go, BindingREST; Kubernetes pkg/registry/core/pod/strategy.go;
pkg/apis/core/v1/conversion.go, pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.kinds.cells import NONE, age, condition
from deltaloop.apiserver.core.kinds.field_checks import (
    address_errors,
    address_family,
    address_warnings,
    agree_on_first,
    each,
    one_of_each_errors,
)
from deltaloop.apiserver.core.kinds.kubelet_verbs import verbs_of_pods
from deltaloop.apiserver.core.kinds.pod_eviction import evict
from deltaloop.apiserver.core.kinds.pod_placement import gate_update_errors, narrowed_errors
from deltaloop.apiserver.core.kinds.pod_spec import POD_CHECKS
from deltaloop.apiserver.core.kinds.pod_volumes import tokens_without_account
from deltaloop.apiserver.core.kinds.pod_warnings import (
    app_armor_warnings,
    is_windows,
    name_warnings,
    pod_warnings,
    set_app_armor_profiles,
)
from deltaloop.apiserver.core.kinds.resource_amounts import NOT_NEGATIVE, qos_class
from deltaloop.apiserver.core.strategy import Asked, Moment, Stored, Strategy, Subresource, Writes
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, not_supported, required, shown

_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART: Final = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"{_DOMAIN}/(?P<path>{_PART}(?:/{_PART})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>[^@]+))?", re.ASCII
)
_DIGEST: Final = re.compile("sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}")
_IDENTIFIER: Final = re.compile("[a-f0-9]{64}")
_LONGEST_PATH: Final = 255
_HUB: Final = "docker.io"
_OLD_HUB: Final = "index.docker.io"


def image_tag(image: str) -> str:
    """Return the tag of an image: ``latest`` without tag and digest, or an empty string for an invalid reference."""
    domain, slash, name = image.partition("/")
    is_domain = domain in ("localhost", _OLD_HUB) or domain != domain.lower() or any(sign in domain for sign in ".:")
    if not (slash and is_domain):
        domain, name = _HUB, image
    if domain in (_HUB, _OLD_HUB):
        domain, name = _HUB, name if "/" in name else f"library/{name}"
    found = _REFERENCE.fullmatch(f"{domain}/{name}")
    if found is None or _IDENTIFIER.fullmatch(image) or len(found["path"]) > _LONGEST_PATH:
        return ""
    if found["digest"] and not _DIGEST.fullmatch(found["digest"]):
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")


def _pod(pod: dict[str, object]) -> None:
    spec = mapping(pod.setdefault("spec", {}))
    _requests_of_pod(spec)
    for container in map(mapping, (*items(spec.get("containers")), *items(spec.get("initContainers")))):
        _requests_from_limits(mapping(container.get("resources")))
        if spec.get("hostNetwork") is True:
            for port in map(mapping, items(container.get("ports"))):
                port["hostPort"] = port.get("hostPort") or port.get("containerPort")
    spec.setdefault("enableServiceLinks", True)


def _requests_from_limits(resources: dict[str, object]) -> None:
    limits = mapping(resources.get("limits"))
    if limits:
        resources["requests"] = {**limits, **mapping(resources.get("requests"))}


def _requests_of_pod(spec: dict[str, object]) -> None:
    """Set a pod's own requests to its limits for resources that its containers do not request."""
    limits = mapping(at(spec, "resources", "limits"))
    if not limits:
        return
    asked = {
        name for container in items(spec.get("containers")) for name in mapping(at(container, "resources", "requests"))
    }
    requests = mapping(at(spec, "resources", "requests"))
    defaults = {name: value for name, value in limits.items() if name not in asked}
    mapping(spec["resources"])["requests"] = {**defaults, **requests}


def _pod_spec(spec: dict[str, object]) -> None:
    # Keep the old and the new field name in sync.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if integer(spec.get("terminationGracePeriodSeconds")) < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _container(container: dict[str, object]) -> None:
    container["imagePullPolicy"] = container.get("imagePullPolicy") or pull_policy(text(container.get("image")))


def pull_policy(image: str) -> str:
    """Return the default pull policy: Always if the image is valid and its tag is ``latest`` or missing."""
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def _volume(volume: dict[str, object]) -> None:
    if not any(is_mapping(value) for value in volume.values()):
        volume["emptyDir"] = {}
    image = volume.get("image")
    if is_mapping(image):
        image["pullPolicy"] = image.get("pullPolicy") or pull_policy(text(image.get("reference")))


DEFAULTS: Final[Mapping[str, Callable[[dict[str, object]], object]]] = {
    "core.v1.Container": _container,
    "core.v1.EphemeralContainer": _container,
    "core.v1.Pod": _pod,
    "core.v1.PodSpec": _pod_spec,
    "core.v1.PodStatus": lambda status: agree_on_first(status, "podIP", "podIPs", key="ip"),
    "core.v1.Volume": _volume,
}


_ENDED: Final = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def pod_cells(obj: Mapping[str, object], now: float) -> dict[str, object]:
    spec, status = at(obj, "spec"), at(obj, "status")
    sidecars = {
        text(at(item, "name")) for item in items(at(spec, "initContainers")) if at(item, "restartPolicy") == "Always"
    }
    init_reason, ready = _init_state(obj, sidecars)
    reason = _pod_reason(obj)
    counted = items(at(status, "initContainerStatuses"))
    if not init_reason or condition(obj, "Initialized") == "True":
        containers = items(at(status, "containerStatuses"))
        counted = [item for item in counted if text(at(item, "name")) in sidecars] + containers
        ready += sum(1 for item in containers if _is_running(item))
        reason = _container_reason(obj, containers) or reason
    else:
        reason = init_reason
    ips = items(at(status, "podIPs"))
    return {
        "Ready": f"{ready}/{len(items(at(spec, 'containers'))) + len(sidecars)}",
        "Status": _deletion_reason(obj) or reason,
        "Restarts": _restarts(counted, now),
        "IP": text(at(ips[0], "ip")) if ips else text(at(status, "podIP")) or NONE,
        "Node": text(at(spec, "nodeName")) or NONE,
        "Nominated Node": text(at(status, "nominatedNodeName")) or NONE,
        "Readiness Gates": _readiness_gates(obj),
    }


def _pod_reason(obj: Mapping[str, object]) -> str:
    status = at(obj, "status")
    gated = any(
        at(item, "type") == "PodScheduled" and at(item, "reason") == "SchedulingGated"
        for item in items(at(status, "conditions"))
    )
    return "SchedulingGated" if gated else text(at(status, "reason")) or text(at(status, "phase"))


def _init_state(obj: Mapping[str, object], sidecars: set[str]) -> tuple[str, int]:
    """Return the reason why the pod is still initializing, or an empty string, and the number of ready sidecars."""
    ready = 0
    for position, item in enumerate(items(at(obj, "status", "initContainerStatuses"))):
        ended, waiting = at(item, "state", "terminated"), text(at(item, "state", "waiting", "reason"))
        if ended is not None and integer(at(ended, "exitCode")) == 0:
            continue
        if text(at(item, "name")) in sidecars and at(item, "started") is True:
            ready += at(item, "ready") is True
            continue
        if ended is not None:
            return f"Init:{_end_reason(ended)}", ready
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}", ready
        return f"Init:{position}/{len(items(at(obj, 'spec', 'initContainers')))}", ready
    return "", ready


def _end_reason(ended: object) -> str:
    if reason := text(at(ended, "reason")):
        return reason
    if signal := integer(at(ended, "signal")):
        return f"Signal:{signal}"
    return f"ExitCode:{integer(at(ended, 'exitCode'))}"


def _container_reason(obj: Mapping[str, object], containers: list[object]) -> str:
    """Return the reason of the first container with a reason, or an empty string if all containers run."""
    reason = failure = ""
    for item in reversed(containers):
        ended, waiting = at(item, "state", "terminated"), text(at(item, "state", "waiting", "reason"))
        if waiting:
            reason = waiting
        elif ended is not None:
            reason = _end_reason(ended)
            if integer(at(ended, "exitCode")):
                failure = reason
    if reason != "Completed":
        return reason
    running = any(_is_running(item) for item in containers)
    if running and condition(obj, "Ready") == "True":
        return "Running"
    return failure or ("NotReady" if running else reason)


def _is_running(item: object) -> bool:
    return (
        at(item, "ready") is True
        and at(item, "state", "running") is not None
        and not text(at(item, "state", "waiting", "reason"))
        and at(item, "state", "terminated") is None
    )


def _deletion_reason(obj: Mapping[str, object]) -> str:
    if not at(obj, "metadata", "deletionTimestamp"):
        return ""
    if at(obj, "status", "reason") == "NodeLost":
        return "Unknown"
    return "" if at(obj, "status", "phase") in ("Succeeded", "Failed") else "Terminating"


def _restarts(containers: list[object], now: float) -> str:
    count = sum(integer(at(item, "restartCount")) for item in containers)
    finished = [text(at(item, "lastState", "terminated", "finishedAt")) for item in containers]
    latest = max(finished, default="")
    return f"{count} ({age(latest, now)} ago)" if count and latest else str(count)


def _readiness_gates(obj: Mapping[str, object]) -> str:
    gates = [text(at(item, "conditionType")) for item in items(at(obj, "spec", "readinessGates"))]
    if not gates:
        return NONE
    return f"{sum(condition(obj, gate) == 'True' for gate in gates)}/{len(gates)}"


def row_conditions(pod: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the row condition of a completed pod, which clients can hide."""
    phase = text(at(pod, "status", "phase"))
    if phase not in _ENDED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase]}]


_SCHEDULED = "PodScheduled"


def bind(asked: Asked, writes: Writes, moment: Moment) -> None:
    """Assign a pod to a node, or raise ApiError: 400 for another pod, 404 if missing, and 409 if it cannot be bound."""
    check_binding(asked.fields, name=asked.name)
    pod = writes.fields_of(kinds.POD, asked.namespace, asked.name)
    after = bound_pod(pod, asked.fields, now=moment.now)
    if not asked.dry_run:
        writes.put(kinds.POD, after)


def check_binding(binding: dict[str, object], *, name: str) -> None:
    """Check a binding."""
    if text(at(binding, "metadata", "name")) != name:
        raise status_errors.bad_request("name in URL does not match name in Binding object")
    errors: list[SchemaError] = []
    kind = text(at(binding, "target", "kind"))
    if kind not in ("", "Node"):
        errors.append(not_supported("target.kind", kind, ("Node", "<empty>")))
    if not text(at(binding, "target", "name")):
        errors.append(required("target.name"))
    if errors:
        told = ", ".join(map(str, errors))
        raise status_errors.unexplained(f"[{told}]" if len(errors) > 1 else told)


def bound_pod(pod: dict[str, object], binding: dict[str, object], *, now: float) -> dict[str, object]:
    """Return a bound pod, or raise ConflictError; the binding was checked, and ``now`` is in seconds since 1970."""
    metadata, spec, told = mapping(pod["metadata"]), mapping(pod.get("spec")), mapping(binding.get("metadata"))
    name = text(metadata.get("name"))
    for field, in_go in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, found = text(told.get(field)), text(metadata.get(field))
        if wanted and wanted != found:
            key = f"/registry/pods/{text(metadata.get('namespace'))}/{name}"
            raise status_errors.precondition_conflict(
                kinds.POD, name, storage_key=key, field=in_go, wanted=wanted, found=found
            )
    if metadata.get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if text(spec.get("nodeName")):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if items(spec.get("schedulingGates")):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    marks = {field: {**mapping(metadata.get(field)), **mapping(told.get(field))} for field in ("labels", "annotations")}
    return {
        **pod,
        "metadata": {**metadata, **{field: values for field, values in marks.items() if values}},
        "spec": {**spec, "nodeName": text(at(binding, "target", "name"))},
        "status": _scheduled(mapping(pod.get("status")), now),
    }


def _refused(name: str, why: str) -> Exception:
    return status_errors.conflict(kinds.POD, name, why, subresource="binding")


def _scheduled(status: dict[str, object], now: float) -> dict[str, object]:
    said = {"type": _SCHEDULED, "status": "True", "lastProbeTime": None}
    conditions = list(items(status.get("conditions")))
    place = next(
        (position for position, each in enumerate(conditions) if at(each, "type") == _SCHEDULED), len(conditions)
    )
    before = mapping(conditions[place]) if place < len(conditions) else {}
    since = before.get("lastTransitionTime") if before.get("status") == "True" else format_time(from_epoch(now))
    conditions[place : place + 1] = [{**said, "lastTransitionTime": since}]
    return {**status, "conditions": conditions}


BINDING: Final = Strategy(posts_to=(kinds.POD, "binding"))


_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_GRACE: Final = 30
_RESIZED: Final = ("resources", "resizePolicy")
_UPDATES: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _prepare_new(pod: dict[str, object]) -> None:
    pod["status"] = {"phase": "Pending"}


def _prepare_status(before: dict[str, object], after: dict[str, object]) -> None:
    quality = at(before, "status", "qosClass")
    if quality and not at(after, "status", "qosClass"):
        after["status"] = {**mapping(after.get("status")), "qosClass": quality}


def _finish_new(pod: dict[str, object], _store: Stored, moment: Moment) -> tuple[()]:
    spec = mapping(pod.get("spec"))
    status: dict[str, object] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if items(spec.get("schedulingGates")):
        status["conditions"] = [{**_GATED, "lastProbeTime": None, "lastTransitionTime": moment.time}]
    pod["status"] = status
    if not is_windows(pod):
        set_app_armor_profiles(pod)
    return ()


def _new_errors(pod: Mapping[str, object]) -> Iterator[SchemaError]:
    if items(at(pod, "spec", "ephemeralContainers")):
        yield forbidden_field("spec.ephemeralContainers", "cannot be set on create")
    if at(pod, "spec", "nodeName") and items(at(pod, "spec", "schedulingGates")):
        yield forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _errors(pod: Mapping[str, object]) -> Iterator[SchemaError]:
    yield from tokens_without_account(pod)
    seconds = at(pod, "spec", "terminationGracePeriodSeconds")
    if integer(seconds) < 0:
        yield invalid_value("spec.terminationGracePeriodSeconds", seconds, NOT_NEGATIVE)


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old, new = dict(mapping(before.get("spec"))), dict(mapping(after.get("spec")))
    for group in ("containers", "initContainers"):
        if len(items(old.get(group))) != len(items(new.get(group))):
            yield forbidden_field(f"spec.{group}", "pod updates may not add or remove containers")
            return
        if items(new.get(group)):
            pairs = zip(items(new[group]), items(old.get(group)), strict=True)
            new[group] = [{**mapping(mine), "image": at(theirs, "image")} for mine, theirs in pairs]
    wrong = [*_deadline_errors(old, new)]
    yield from wrong
    if wrong and new.get("activeDeadlineSeconds") is not None:
        return
    if not _has_all_tolerations(old, new):
        text_ = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", text_)
    yield from gate_update_errors(old.get("schedulingGates"), new.get("schedulingGates"))
    free = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    if items(old.get("schedulingGates")):  # a waiting pod can be restricted to fewer nodes
        yield from narrowed_errors(old, new)
        free.append("nodeSelector")
        for spec in (old, new):
            spec["affinity"] = {**mapping(spec.get("affinity")), "nodeAffinity": None}
    if integer(old.get("terminationGracePeriodSeconds")) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        free.append("terminationGracePeriodSeconds")
    kept = [
        {name: value for name, value in spec.items() if value not in (None, []) and name not in free}
        for spec in (old, new)
    ]
    if kept[0] != kept[1]:
        yield forbidden_field("spec", _UPDATES)


def _deadline_errors(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[SchemaError]:
    path, before, after = (
        "spec.activeDeadlineSeconds",
        old.get("activeDeadlineSeconds"),
        new.get("activeDeadlineSeconds"),
    )
    if before is not None and after is None:
        yield invalid_value(path, None, "must not update from a positive integer to nil value")
    elif before is not None and integer(after) > integer(before):
        yield invalid_value(path, after, "must be less than or equal to previous value")


def _has_all_tolerations(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    before, after = (
        {shown({**mapping(each), "tolerationSeconds": None}) for each in items(spec.get("tolerations"))}
        for spec in (old, new)
    )
    return before <= after


def _status_errors(_before: Mapping[str, object], pod: Mapping[str, object]) -> Iterator[SchemaError]:
    status = mapping(pod.get("status"))
    for one, several in (("", "podIPs"), ("hostIP", "hostIPs")):
        path, found = f"status.{several}", [text(at(item, "ip")) for item in items(status.get(several))]
        if one and found and found[0] != text(status.get(one)):
            yield invalid_value(f"{path}[0].ip", found[0], f"must be equal to `{one}`")
        yield from address_errors(found, path)
        families = [address_family(address) for address in found]
        yield from one_of_each_errors(families, path, [{"IP": address} for address in found], "IP")


def _new_warnings(pod: Mapping[str, object]) -> Iterator[str]:
    if not is_windows(pod):
        yield from app_armor_warnings(pod)
    yield from name_warnings(pod, "in the Pod's hostname")
    yield from pod_warnings(pod)


def _status_warnings(pod: Mapping[str, object]) -> Iterator[str]:
    for several in ("podIPs", "hostIPs"):
        for field, item in each(pod.get("status"), several, "status"):
            yield from address_warnings(text(item.get("ip")), f"{field}.ip")


def _with_ephemeral_containers(current: dict[str, object], sent: dict[str, object]) -> dict[str, object]:
    return _with_spec(current, {"ephemeralContainers": at(sent, "spec", "ephemeralContainers")})


def _resized(current: dict[str, object], sent: dict[str, object]) -> dict[str, object]:
    changed: dict[str, object] = {
        name: [*_resized_containers(at(current, "spec", name), at(sent, "spec", name))]
        for name in ("containers", "initContainers")
    }
    return _with_spec(current, changed)


def _resized_containers(present: object, sent: object) -> Iterator[dict[str, object]]:
    wanted = {text(at(container, "name")): container for container in map(mapping, items(sent))}
    for container in map(mapping, items(present)):
        found = wanted.get(text(at(container, "name")), {})
        yield {**container, **{name: found[name] for name in _RESIZED if name in found}}


def _with_spec(current: dict[str, object], changed: dict[str, object]) -> dict[str, object]:
    """Return the pod with changed spec fields, and increment its generation if it differs."""
    spec = {**mapping(current.get("spec")), **changed}
    spec = {name: value for name, value in spec.items() if value not in (None, [])}
    result = {**current, "spec": spec}
    if spec != current.get("spec"):
        result["metadata"] = {
            **mapping(current["metadata"]),
            "generation": integer(at(current, "metadata", "generation")) + 1,
        }
    return result


def _grace(pod: dict[str, object], asked: int | None) -> int:
    """Return the grace period in seconds, which is 0 unless the pod runs on a node."""
    if not at(pod, "spec", "nodeName") or at(pod, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return asked
    seconds = at(pod, "spec", "terminationGracePeriodSeconds")
    return seconds if isinstance(seconds, int) and seconds >= 0 else _GRACE


STRATEGY: Final = Strategy(
    defaults=DEFAULTS,
    prepare_new=_prepare_new,
    prepare_status=_prepare_status,
    parts={"ephemeralcontainers": _with_ephemeral_containers, "resize": _resized},
    checks=POD_CHECKS,
    validate=_errors,
    validate_new=_new_errors,
    validate_update=_update_errors,
    validate_status=_status_errors,
    warn_new=_new_warnings,
    warn_status=_status_warnings,
    finish_new=_finish_new,
    subresources=(
        Subresource("binding", "", "", "Binding", ("create",), bind),
        Subresource("eviction", "policy", "v1", "Eviction", ("create",), evict),
        *verbs_of_pods(),
    ),
    timed_cells=pod_cells,
    row_conditions=row_conditions,
    grace=_grace,
    marked_when_removed=True,
)
