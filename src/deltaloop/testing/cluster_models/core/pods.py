"""Scheduler and kubelet: a Pod gets a node, starts, becomes ready, and ends.

claim Pending ──▶ an existing volume that fits, or a new one ──▶ both are Bound
claim deleted ──▶ the volume is Released, and deleted if its reclaim policy is Delete

Pending ──▶ bound ──▶ Running ──▶ Ready ──▶ Succeeded or Failed, if its program ends
   │ waits for its claims             │ deleted: not ready any more, then removed, unless a finalizer holds it
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, items, mapping, string_map, text, texts
from deltaloop.schemas.quantity import amount
from deltaloop.testing.cluster_models.core.cluster_view import (
    REACTS,
    ClusterObject,
    ClusterView,
    EnvironmentStep,
    EnvironmentVerb,
    EnvironmentWrite,
    conditions,
    creates,
    deletes,
    in_order,
    patches,
    reference_of,
    reports,
    selects,
)

PROVISIONER: Final = "deltaloop.dev/environment"
_PROVISIONED: Final = "pv.kubernetes.io/provisioned-by"
_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


def volumes(view: ClusterView) -> list[EnvironmentStep]:
    steps: list[EnvironmentStep] = []
    for claim in view.of(kinds.PERSISTENT_VOLUME_CLAIM):
        steps += _claimed(claim, view)
    for volume in view.of(kinds.PERSISTENT_VOLUME):
        steps += _of_volume(volume, view)
    return steps


def _claimed(claim: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    name = text(claim.spec.get("volumeName"))
    if claim.deleted:
        return []
    if name:
        volume = next((each for each in view.of(kinds.PERSISTENT_VOLUME) if each.name == name), None)
        if volume is None or at(volume.spec, "claimRef", "uid") not in (None, "", claim.uid):
            return reports(claim, {**claim.status, "phase": "Lost"}) if claim.phase == "Bound" else []
        if at(volume.spec, "claimRef", "uid") != claim.uid:
            return [_reserved(volume, claim)]
        return _bound(claim, volume)
    mine = [each for each in view.of(kinds.PERSISTENT_VOLUME) if _is_for(each, claim)]
    if not mine:
        return _provisioned(claim, view)
    volume = min(mine, key=lambda each: (at(each.spec, "claimRef", "uid") != claim.uid, _capacity(each), each.name))
    if at(volume.spec, "claimRef", "uid") != claim.uid:
        return [_reserved(volume, claim)]
    body = {"metadata": {"annotations": _BOUND}, "spec": {"volumeName": volume.name}}
    return [patches(claim, body, f"{claim} gets volume {volume.name}")]


def _is_for(volume: ClusterObject, claim: ClusterObject) -> bool:
    """Return whether a volume belongs to a claim, or fits it and is free."""
    reference = at(volume.spec, "claimRef")
    if volume.deleted:
        return False
    if reference:
        named = (at(reference, "namespace"), at(reference, "name")) == (claim.namespace, claim.name)
        return named and at(reference, "uid") in (None, "", claim.uid)
    return (
        text(volume.spec.get("storageClassName")) == text(claim.spec.get("storageClassName"))
        and {*texts(claim.spec.get("accessModes"))} <= {*texts(volume.spec.get("accessModes"))}
        and _mode(volume) == _mode(claim)
        and _capacity(volume) >= _requested(claim)
        and (not claim.spec.get("selector") or _is_selected(volume, claim))
    )


def _is_selected(volume: ClusterObject, claim: ClusterObject) -> bool:
    by_expressions = at(claim.spec, "selector", "matchExpressions")  # not modeled
    return not by_expressions and selects(at(claim.spec, "selector", "matchLabels"), volume.labels)


def _mode(obj: ClusterObject) -> str:
    return text(obj.spec.get("volumeMode")) or "Filesystem"


def _capacity(volume: ClusterObject) -> Fraction:
    return amount(at(volume.spec, "capacity", "storage"))


def _requested(claim: ClusterObject) -> Fraction:
    return amount(at(claim.spec, "resources", "requests", "storage"))


def _reserved(volume: ClusterObject, claim: ClusterObject) -> EnvironmentStep:
    return patches(volume, {"spec": {"claimRef": _reference(claim)}}, f"{volume} is kept for {claim}")


def _reference(claim: ClusterObject) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": claim.kind.kind,
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
    }


def _provisioned(claim: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    storage_class = text(claim.spec.get("storageClassName"))
    if any(each.name == storage_class for each in view.of(kinds.STORAGE_CLASS)):
        return []
    name = f"pvc-{claim.uid}"
    spec: dict[str, object] = {
        "capacity": {"storage": at(claim.spec, "resources", "requests", "storage")},
        "accessModes": items(claim.spec.get("accessModes")),
        "claimRef": _reference(claim),
        "persistentVolumeReclaimPolicy": "Delete",
        "volumeMode": _mode(claim),
        "hostPath": {"path": f"/volumes/{name}"},
        **({"storageClassName": storage_class} if storage_class else {}),
    }
    body = {"metadata": {"annotations": {_PROVISIONED: PROVISIONER}}, "spec": spec}
    return [creates(claim, kinds.PERSISTENT_VOLUME, body, f"a volume is made for {claim}", name=name)]


def _bound(claim: ClusterObject, volume: ClusterObject) -> list[EnvironmentStep]:
    asked = at(claim.spec, "resources", "requests", "storage")
    capacity = mapping(volume.spec.get("capacity"))
    if claim.phase == "Bound" and _capacity(volume) < _requested(claim) and _is_ours(volume):
        return [patches(volume, {"spec": {"capacity": {"storage": asked}}}, f"{volume} grows to {asked}")]
    status = {
        **claim.status,
        "phase": "Bound",
        "accessModes": items(volume.spec.get("accessModes")),
        "capacity": capacity,
    }
    return reports(claim, status, f"{claim} is bound")


def _is_ours(volume: ClusterObject) -> bool:
    return volume.annotations.get(_PROVISIONED) == PROVISIONER


def _of_volume(volume: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    reference = at(volume.spec, "claimRef")
    uid = text(at(reference, "uid"))
    if volume.deleted:
        return []
    if not uid:
        return reports(volume, {**volume.status, "phase": "Available"})
    claim = view.find(kinds.PERSISTENT_VOLUME_CLAIM, text(at(reference, "namespace")), text(at(reference, "name")))
    if claim is not None and claim.uid == uid:
        bound = claim.spec.get("volumeName") == volume.name
        return reports(volume, {**volume.status, "phase": "Bound"}) if bound else []
    if volume.phase != "Released":
        return reports(volume, {**volume.status, "phase": "Released"}, f"{volume} is released")
    gone = volume.spec.get("persistentVolumeReclaimPolicy") == "Delete" and _is_ours(volume)
    return [deletes(volume, takes=(10 * REACTS[0], 10 * REACTS[1]))] if gone else []


_SCHEDULING: Final = (0.01, 0.1)
_STARTING: Final = (0.5, 3.0)
_GETTING_READY: Final = (0.2, 3.0)
_RUNNING: Final = (1.0, 10.0)
_NOTICING: Final = (0.01, 0.2)
_ENDING: Final = 5.0
_LONGEST_BACKOFF: Final = 300.0
ONLY_NODE: Final = "node-1"


def schedule(view: ClusterView) -> list[EnvironmentStep]:
    pods = view.of(kinds.POD)
    loads = {node.name: sum(pod.spec.get("nodeName") == node.name for pod in pods) for node in view.of(kinds.NODE)}
    steps: list[EnvironmentStep] = []
    for pod in pods:
        if pod.spec.get("nodeName") or pod.deleted or pod.spec.get("schedulingGates") or _is_finished(pod):
            continue
        fitting = [node for node in view.of(kinds.NODE) if _fits(node, pod)]
        if not _has_volumes(pod, view) or (loads and not fitting):
            continue
        name = min(fitting, key=lambda node: (loads[node.name], node.name)).name if fitting else ONLY_NODE
        if name in loads:
            loads[name] += 1
        body = {"metadata": {"name": pod.name, "uid": pod.uid}, "target": {"kind": "Node", "name": name}}
        write = EnvironmentWrite(
            verb=EnvironmentVerb.BIND, kind=kinds.POD, namespace=pod.namespace, name=pod.name, body=body
        )
        steps.append(EnvironmentStep(about=pod.uid, told=f"{pod} gets a node", takes=_SCHEDULING, write=write))
    return steps


def _fits(node: ClusterObject, pod: ClusterObject) -> bool:
    wanted = string_map(pod.spec.get("nodeSelector"))
    return (
        not node.deleted
        and not node.spec.get("unschedulable")
        and node.condition("Ready") in ("", "True")
        and all(node.labels.get(name) == value for name, value in wanted.items())
    )


def _has_volumes(pod: ClusterObject, view: ClusterView) -> bool:
    for volume in items(pod.spec.get("volumes")):
        name = text(at(volume, "persistentVolumeClaim", "claimName"))
        claim = view.find(kinds.PERSISTENT_VOLUME_CLAIM, pod.namespace, name) if name else None
        if name and (claim is None or claim.deleted or claim.phase != "Bound"):
            return False
    return True


def run(view: ClusterView) -> list[EnvironmentStep]:
    return [step for pod in view.of(kinds.POD) if pod.spec.get("nodeName") for step in _next(pod, view)]


def _next(pod: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    if pod.deleted:
        return _end(pod, view)
    if _is_finished(pod):
        return []
    fails, restarts = view.fails(pod), text(pod.spec.get("restartPolicy")) or "Always"
    if pod.phase != "Running":
        return reports(pod, _running(pod, view, ready=False), f"{pod} starts", takes=_STARTING)
    if fails and restarts != "Never":
        return _falls_over(pod, view)
    if pod.condition("Ready") != "True":
        least, most = _GETTING_READY
        delay = _initial_delay(pod)
        ready = _running(pod, view, ready=True)
        if any(pod.condition(gate) != "True" for gate in _gates(pod)):
            ready["conditions"] = conditions(pod, view.instant, {"ContainersReady": ("True", "", "")})
        return reports(pod, ready, f"{pod} becomes ready", takes=(delay + least, delay + most))
    if restarts == "Always":
        return []
    ended = _ended(pod, view, code=1 if fails else 0, phase="Failed" if fails else "Succeeded")
    return reports(pod, ended, f"{pod} {'fails' if fails else 'succeeds'}", takes=_RUNNING)


def _end(pod: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    """Return the steps that end a deleted Pod: its program ends within the grace period, then the Pod is removed."""
    grace = integer(pod.metadata.get("deletionGracePeriodSeconds"))
    if pod.phase == "Running":
        # A server stops gracefully; a task with an end was interrupted, so it failed.
        stopped = text(pod.spec.get("restartPolicy")) in ("Never", "OnFailure")
        ended = _ended(pod, view, code=143 if stopped else 0, phase="Failed" if stopped else "Succeeded")
        return reports(pod, ended, f"{pod} ends", takes=(min(0.2, grace), min(_ENDING, grace)))
    # A grace period of 0 means that this step was done, and a finalizer holds the Pod.
    return [deletes(pod, f"{pod} is removed", takes=_NOTICING, grace=0)] if grace else []


def _falls_over(pod: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    """Return the next failure of a restarted program; without a Job it fails once, because no limit ends it."""
    often = max((integer(at(each, "restartCount")) for each in items(pod.status.get("containerStatuses"))), default=0)
    owner = next((job for job in view.of(kinds.JOB) if job.uid == pod.owner), None)
    if often and owner is None:
        return []
    status = _running(pod, view, ready=False)
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    status["containerStatuses"] = [
        {**mapping(each), "restartCount": often + 1, "state": waiting} for each in items(status["containerStatuses"])
    ]
    pause = min(_LONGEST_BACKOFF, 10.0 * 2.0 ** (often - 1)) if often else 1.0
    return reports(pod, status, f"{pod} fails and is started again", takes=(pause, pause + 1.0))


def _running(pod: ClusterObject, view: ClusterView, *, ready: bool) -> dict[str, object]:
    said = ("True", "", "") if ready else ("False", "ContainersNotReady", "containers are not ready")
    wanted = {
        "Initialized": ("True", "", ""),
        "Ready": said,
        "ContainersReady": said,
        "PodScheduled": ("True", "", ""),
    }
    address = pod.status.get("podIP") or _address(view.draw(f"address of {pod}"))
    host = "192.0.2.1"
    containers = [_container(pod, each, view, ready=ready) for each in items(pod.spec.get("containers"))]
    return {
        **pod.status,
        "phase": "Running",
        "startTime": pod.status.get("startTime") or view.instant,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": conditions(pod, view.instant, wanted),
        "containerStatuses": containers,
    }


def _ended(pod: ClusterObject, view: ClusterView, *, code: int, phase: str) -> dict[str, object]:
    reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    wanted = {"Ready": ("False", reason, ""), "ContainersReady": ("False", reason, "")}
    end = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": view.instant}
    containers = [
        {**mapping(each), "ready": False, "started": False, "state": {"terminated": end}}
        for each in items(pod.status.get("containerStatuses"))
    ]
    return {
        **pod.status,
        "phase": phase,
        "conditions": conditions(pod, view.instant, wanted),
        "containerStatuses": containers,
    }


def _container(pod: ClusterObject, container: object, view: ClusterView, *, ready: bool) -> dict[str, object]:
    name, image = text(at(container, "name")), text(at(container, "image"))
    before = next((each for each in items(pod.status.get("containerStatuses")) if at(each, "name") == name), None)
    return {
        "name": name,
        "image": image,
        "imageID": image,
        "restartCount": integer(at(before, "restartCount")),
        "ready": ready,
        "started": True,
        "state": {"running": {"startedAt": at(before, "state", "running", "startedAt") or view.instant}},
    }


def _address(drawn: float) -> str:
    number = int(drawn * 65_000) + 1
    return f"10.244.{number // 256}.{number % 256}"


def _initial_delay(pod: ClusterObject) -> int:
    probes = [at(each, "readinessProbe", "initialDelaySeconds") for each in items(pod.spec.get("containers"))]
    return max((integer(each) for each in probes), default=0)


def _gates(pod: ClusterObject) -> list[str]:
    return [text(at(each, "conditionType")) for each in items(pod.spec.get("readinessGates"))]


def _is_finished(pod: ClusterObject) -> bool:
    return pod.phase in ("Succeeded", "Failed")


def is_active(pod: ClusterObject) -> bool:
    """Return whether a Pod has not ended and is not being deleted."""
    return not pod.deleted and not _is_finished(pod)


def is_ready(pod: ClusterObject) -> bool:
    return pod.condition("Ready") == "True"


def availability(pod: ClusterObject, least_ready: int) -> EnvironmentStep:
    told = f"{pod} has been ready for {least_ready} s"
    return EnvironmentStep(about=pod.uid, told=told, takes=(least_ready, least_ready), write=None)


def available(pods: list[ClusterObject], least_ready: int, view: ClusterView) -> tuple[int, list[EnvironmentStep]]:
    """Return the number of Pods that have been ready for long enough, and the marks to wait for."""
    ready = [pod for pod in pods if is_ready(pod)]
    if not least_ready:
        return len(ready), []
    marks = [availability(pod, least_ready) for pod in ready]
    return sum(map(view.has_passed, marks)), marks


_SERVICE: Final = "kubernetes.io/service-name"
_MANAGED_BY: Final = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}


def endpoints(view: ClusterView) -> list[EnvironmentStep]:
    return [step for each in view.of(kinds.SERVICE) for step in _of(each, view)]


def _of(service: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    if service.deleted or not service.spec.get("selector") or service.spec.get("type") == "ExternalName":
        return []
    pods = [
        pod
        for pod in in_order(view.of(kinds.POD))
        if pod.namespace == service.namespace
        and selects(service.spec.get("selector"), pod.labels)
        and pod.status.get("podIP")
        and pod.phase == "Running"
    ]
    wanted = {
        "endpoints": [_endpoint(pod, publishes=bool(service.spec.get("publishNotReadyAddresses"))) for pod in pods],
        "ports": [_port(port, pods) for port in items(service.spec.get("ports"))],
    }
    slices = [each for each in view.controlled_by(service, kinds.ENDPOINT_SLICE) if not each.deleted]
    if not slices:
        metadata: dict[str, object] = {
            "generateName": f"{service.name}-",
            "labels": {_SERVICE: service.name, **_MANAGED_BY},
            "ownerReferences": [reference_of(service)],
        }
        body = {"metadata": metadata, "addressType": "IPv4", **wanted}
        return [creates(service, kinds.ENDPOINT_SLICE, body, f"{service} gets an EndpointSlice")]
    present = {"endpoints": items(slices[0].fields.get("endpoints")), "ports": items(slices[0].fields.get("ports"))}
    return [] if present == wanted else [patches(slices[0], wanted, f"the endpoints of {service} are written")]


def _endpoint(pod: ClusterObject, *, publishes: bool) -> dict[str, object]:
    serving = publishes or is_ready(pod)
    hostname = text(pod.spec.get("hostname")) if pod.spec.get("subdomain") else ""
    return {
        "addresses": [text(pod.status.get("podIP"))],
        "conditions": {
            "ready": serving and (publishes or not pod.deleted),
            "serving": serving,
            "terminating": pod.deleted,
        },
        **({"hostname": hostname} if hostname else {}),
        "targetRef": {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
        "nodeName": text(pod.spec.get("nodeName")),
    }


def _port(port: object, pods: list[ClusterObject]) -> dict[str, object]:
    target = at(port, "targetPort")
    number = integer(target) or integer(at(port, "port"))
    if isinstance(target, str):
        containers = [mapping(each) for pod in pods for each in items(pod.spec.get("containers"))]
        named = [each for container in containers for each in items(container.get("ports"))]
        number = next((integer(at(each, "containerPort")) for each in named if at(each, "name") == target), number)
    protocol = text(at(port, "protocol")) or "TCP"
    return {"name": text(at(port, "name")), "port": number, "protocol": protocol}
