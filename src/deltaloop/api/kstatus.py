"""Compute the status of any object by the rules of kstatus: current, in progress, failed or terminating.

The rules apply in this order: a pending deletion, a status for an older generation, the conditions ``Reconciling`` and
``Stalled``, the rule of a built-in kind, and the condition ``Ready``. An object without any of these is current. Unlike
upstream, a condition about an older generation is ignored, and an unknown Pod phase is an unknown status.

Source: sigs.k8s.io/cli-utils pkg/kstatus/status (``generic.go``, ``core.go``), pkg/kstatus/polling/aggregator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeAlias, final

from deltaloop.api.conditions import Condition, conditions_of, is_outdated, is_reason
from deltaloop.api.json_values import is_mapping, items, mapping
from deltaloop.api.path import Path
from deltaloop.api.references import as_resource, reference_to
from deltaloop.api.resource import Resource
from deltaloop.api.times import WallTime, parse_time

_Map: TypeAlias = Mapping[str, object]

_STATUS: Final = Path("status")
_SPEC: Final = Path("spec")
_SCHEDULING: Final = timedelta(seconds=15.0)
"""Time for which a Pod can be unscheduled before it counts as failed."""
_NO_DEADLINE: Final = 2**31 - 1
_MOST_NAMED: Final = 10
_MOST_OF_EACH: Final = 200


class KStatus(StrEnum):
    """Status values of kstatus."""

    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    NOT_FOUND = "NotFound"
    UNKNOWN = "Unknown"


@final
@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """Status of an object.

    Attributes:
        status: Status value.
        reason: Reason in one word, such as ``LessReady``, which you can use as the reason of a condition.
        message: Explanation for users.
    """

    status: KStatus
    reason: str
    message: str

    @property
    def is_current(self) -> bool:
        """Whether the object matches its spec."""
        return self.status is KStatus.CURRENT


def object_status(obj: object | None, *, now: WallTime | None = None) -> ObjectStatus:
    """Return the status of an object.

    A running Job is current, and so is a Pod that has ended with any result, as in upstream. To wait for the end of a
    Job, wait for its condition ``Complete``.

    Args:
        obj: ``Resource``, mapping or typed object, with its status. None means that the object does not exist.
        now: Current wall-clock time. If it is given, an unschedulable Pod counts as failed 15 s after its creation,
            otherwise immediately.

    Raises:
        MalformedObjectError: If the object cannot be decoded.
    """
    if obj is None:
        return ObjectStatus(KStatus.NOT_FOUND, "NotFound", "it does not exist")
    obj = as_resource(obj)
    seen = _Seen(obj, now)
    found = _by_what_all_have(seen)
    if found is None:
        group = obj.api_version.rpartition("/")[0]
        rule = _RULES.get((group, obj.kind))
        found = _by_ready(seen) if rule is None else rule(seen)
    return found


def combined_status(objects: Iterable[object | None], *, now: WallTime | None = None) -> ObjectStatus:
    """Return the combined status of several objects, such as the children of an owner.

    The result is current if all objects are current, failed if an object has failed, otherwise unknown if a status is
    unknown, otherwise in progress. The message names the first ten objects that are not current. An empty list is
    current.

    Args:
        objects: Objects. None means that an object does not exist.
        now: See ``object_status``.

    Raises:
        MalformedObjectError: If an object cannot be decoded.
    """
    all_of_them = [(obj, object_status(obj, now=now)) for obj in objects]
    behind = [(obj, found) for obj, found in all_of_them if not found.is_current]
    if not behind:
        return _current("there is nothing to wait for" if not all_of_them else f"all {len(all_of_them)} are current")
    there = {found.status for _, found in behind}
    status = next((each for each in (KStatus.FAILED, KStatus.UNKNOWN) if each in there), KStatus.IN_PROGRESS)
    named = [f"{_name(obj)} is {found.status}: {_cut(found.message)}" for obj, found in behind[:_MOST_NAMED]]
    if len(behind) > _MOST_NAMED:
        named.append(f"and {len(behind) - _MOST_NAMED} more")
    reason = behind[0][1].reason if len(behind) == 1 else str(status)
    return ObjectStatus(status, reason, f"{len(behind)} of {len(all_of_them)} are not current: {'; '.join(named)}")


# -- parts of an object


@final
class _Seen:
    """Parts of an object that the rules use."""

    __slots__ = ("conditions", "now", "obj", "ready", "spec", "status")

    def __init__(self, obj: Resource, now: WallTime | None) -> None:
        self.obj = obj
        self.now = now
        self.spec: _Map = mapping(_SPEC.get(obj))
        self.status: _Map = mapping(_STATUS.get(obj))
        self.ready: Condition | None = None
        self.conditions: list[Condition] = []
        for each in conditions_of(obj):
            if each.get("type") == "Ready":
                self.ready = each
            if not is_outdated(obj, each):
                self.conditions.append(each)

    def condition(self, type_name: str, status: str = "True") -> Condition | None:
        for each in self.conditions:
            if each.get("type") == type_name and each.get("status") == status:
                return each
        return None

    def count(self, field: str) -> int:
        return _number(self.status.get(field), 0)

    def replicas(self) -> int:
        return _number(self.spec.get("replicas"), 1)


def _by_what_all_have(seen: _Seen) -> ObjectStatus | None:
    if seen.obj.deletion_timestamp:
        return ObjectStatus(KStatus.TERMINATING, "Terminating", "it is being deleted")
    observed, generation = seen.status.get("observedGeneration"), seen.obj.generation
    if generation and isinstance(observed, int) and observed != generation:
        return _in_progress(
            "LatestGenerationNotObserved", f"generation {generation} has not been observed yet, but {observed} has"
        )
    for each in seen.conditions:
        if each.get("status") == "True" and each.get("type") in ("Reconciling", "Stalled"):
            return _from(each, KStatus.IN_PROGRESS if each["type"] == "Reconciling" else KStatus.FAILED)
    return None


def _by_ready(seen: _Seen) -> ObjectStatus:
    ready = seen.ready
    if ready is None:
        return _current("no condition says otherwise")
    if is_outdated(seen.obj, ready):
        return _in_progress("LatestGenerationNotObserved", "its condition Ready is about an older generation")
    return _current("its condition Ready is True") if ready.get("status") == "True" else _from(ready)


# -- rules for kinds


def _always(_: _Seen) -> ObjectStatus:
    return _current("it is current by being there")


def _deployment(seen: _Seen) -> ObjectStatus:
    if any(
        each.get("type") == "Progressing" and _reason(each) == "ProgressDeadlineExceeded" for each in seen.conditions
    ):
        return ObjectStatus(
            KStatus.FAILED, "ProgressDeadlineExceeded", "the rollout has exceeded its progress deadline"
        )
    wanted, updated = seen.replicas(), seen.count("updatedReplicas")
    behind = (
        _less(seen, wanted, ("LessReplicas", "replicas"), ("LessUpdated", "updatedReplicas"))
        or _extra(seen, wanted)
        or _less(seen, updated, ("LessAvailable", "availableReplicas"))
        or _less(seen, wanted, ("LessReady", "readyReplicas"))
    )
    if behind is not None:
        return behind
    # Without a deadline, the condition Progressing does not exist.
    if _number(seen.spec.get("progressDeadlineSeconds"), _NO_DEADLINE) != _NO_DEADLINE:
        progressing = seen.condition("Progressing")
        if progressing is None or _reason(progressing) != "NewReplicaSetAvailable":
            return _in_progress("ReplicaSetNotAvailable", "its new ReplicaSet is not available")
    if seen.condition("Available") is None:
        return _in_progress("DeploymentNotAvailable", "its condition Available is not True")
    return _current(f"{wanted} replicas are available")


def _replica_set(seen: _Seen) -> ObjectStatus:
    if seen.condition("ReplicaFailure") is not None:
        return _in_progress("ReplicaFailure", "Pods could not be created or deleted")
    wanted = seen.replicas()
    fields = (
        ("LessLabelled", "fullyLabeledReplicas"),
        ("LessAvailable", "availableReplicas"),
        ("LessReady", "readyReplicas"),
    )
    return _less(seen, wanted, *fields) or _extra(seen, wanted) or _current(f"{wanted} replicas are available")


def _stateful_set(seen: _Seen) -> ObjectStatus:
    strategy = mapping(seen.spec.get("updateStrategy"))
    if strategy.get("type") == "OnDelete":
        return _current("it is updated by deleting its Pods by hand")
    wanted = seen.replicas()
    fields = (("LessReplicas", "replicas"), ("LessReady", "readyReplicas"))
    behind = _less(seen, wanted, *fields) or _extra(seen, wanted)
    if behind is not None:
        return behind
    partition = _number(mapping(strategy.get("rollingUpdate")).get("partition"), -1)
    if partition >= 0:
        updating = max(0, wanted - partition)
        behind = _less(seen, updating, ("PartitionRollout", "updatedReplicas"))
        return behind or _current(f"{updating} replicas of the partition are updated")
    behind = _less(seen, wanted, ("LessCurrent", "currentReplicas"))
    if behind is not None:
        return behind
    if seen.status.get("currentRevision") != seen.status.get("updateRevision"):
        return _in_progress("RevisionMismatch", "not all replicas have the latest revision")
    return _current(f"{wanted} replicas are ready")


def _daemon_set(seen: _Seen) -> ObjectStatus:
    if not seen.obj.generation:
        return _in_progress("NoGeneration", "it has no generation")
    if seen.status.get("observedGeneration") is None:
        return _in_progress("NoObservedGeneration", "its controller has not seen it yet")
    wanted = _number(seen.status.get("desiredNumberScheduled"), -1)
    if wanted < 0:
        return _in_progress("NoDesiredNumber", "its controller has not said on how many nodes it is to run")
    fields = (
        ("LessCurrent", "currentNumberScheduled"),
        ("LessUpdated", "updatedNumberScheduled"),
        ("LessAvailable", "numberAvailable"),
        ("LessReady", "numberReady"),
    )
    return _less(seen, wanted, *fields) or _current(f"it runs on {wanted} nodes")


def _pod(seen: _Seen) -> ObjectStatus:
    match seen.status.get("phase"):
        case None | "":
            return _in_progress("PodNotObserved", "it has no phase yet")
        case "Succeeded":
            return _current("it has ended with success")
        case "Failed":
            return _current("it has ended without success")
        case "Running":
            return _running_pod(seen)
        case "Pending":
            return _pending_pod(seen)
        case _:
            return ObjectStatus(KStatus.UNKNOWN, "PodPhaseUnknown", "its phase is not known here")


def _running_pod(seen: _Seen) -> ObjectStatus:
    if seen.condition("Ready") is not None:
        return _current("it is ready")
    crashing = [
        _text(container.get("name"))
        for container in _mappings(seen.status.get("containerStatuses"))
        if mapping(mapping(container.get("state")).get("waiting")).get("reason") == "CrashLoopBackOff"
    ]
    if crashing:
        return ObjectStatus(
            KStatus.FAILED, "ContainerCrashLooping", f"containers crash again and again: {', '.join(crashing)}"
        )
    return _in_progress("PodRunningNotReady", "it runs, and is not ready")


def _pending_pod(seen: _Seen) -> ObjectStatus:
    unscheduled = seen.condition("PodScheduled", "False")
    if unscheduled is None or _reason(unscheduled) != "Unschedulable":
        return _in_progress("PodPending", "its phase is Pending")
    created = seen.obj.creation_timestamp
    if seen.now is not None and created and seen.now - parse_time(created) < _SCHEDULING:
        return _in_progress("PodNotScheduled", "no node has taken it yet")
    return ObjectStatus(KStatus.FAILED, "PodUnschedulable", "no node takes it")


def _claim(seen: _Seen) -> ObjectStatus:
    phase = _text(seen.status.get("phase")) or "not known"
    return _current("it is bound") if phase == "Bound" else _in_progress("NotBound", f"its phase is {phase}")


def _job(seen: _Seen) -> ObjectStatus:
    succeeded, failed, active = (seen.count(field) for field in ("succeeded", "failed", "active"))
    if seen.condition("Complete") is not None:
        return _current(f"it has ended with success: {succeeded} Pods")
    if seen.condition("Failed") is not None:
        return ObjectStatus(KStatus.FAILED, "JobFailed", f"{failed} of its Pods have failed")
    if seen.condition("Suspended") is not None:
        return _current("it is suspended")
    if not seen.status.get("startTime"):
        return _in_progress("JobNotStarted", "it has not begun")
    return _current(f"it runs: {active} Pods are active, {succeeded} have succeeded, {failed} have failed")


def _service(seen: _Seen) -> ObjectStatus:
    if seen.spec.get("type") == "LoadBalancer" and not seen.spec.get("clusterIP"):
        return _in_progress("NoIPAssigned", "it has no cluster IP")
    return _current("it is there")


def _custom_resource_definition(seen: _Seen) -> ObjectStatus:
    refused = seen.condition("NamesAccepted", "False")
    if refused is not None:
        return _from(refused, KStatus.FAILED)
    if seen.condition("Established") is not None:
        return _current("it is served")
    held = seen.condition("Established", "False")
    if held is not None and _reason(held) != "Installing":
        return _from(held, KStatus.FAILED)
    return _in_progress("Installing", "it is not served yet")


_RULES: Final[Mapping[tuple[str, str], Callable[[_Seen], ObjectStatus]]] = {
    ("", "ConfigMap"): _always,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "Secret"): _always,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _custom_resource_definition,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _always,
    ("batch", "Job"): _job,
    ("policy", "PodDisruptionBudget"): _always,
}


# -- helpers


def _less(seen: _Seen, wanted: int, *fields: tuple[str, str]) -> ObjectStatus | None:
    """Return the status for the first count below ``wanted``, or None."""
    for reason, field in fields:
        if seen.count(field) < wanted:
            return _in_progress(reason, f"{field} is {seen.count(field)} of {wanted}")
    return None


def _extra(seen: _Seen, wanted: int) -> ObjectStatus | None:
    extra = seen.count("replicas") - wanted
    return _in_progress("ExtraPods", f"{extra} Pods are still to go") if extra > 0 else None


def _current(message: str) -> ObjectStatus:
    return ObjectStatus(KStatus.CURRENT, "Current", message)


def _in_progress(reason: str, message: str) -> ObjectStatus:
    return ObjectStatus(KStatus.IN_PROGRESS, reason, message)


def _from(condition: Condition, status: KStatus = KStatus.IN_PROGRESS) -> ObjectStatus:
    name = f"its condition {_text(condition.get('type'))} is {_text(condition.get('status'))}"
    reason = _reason(condition)
    return ObjectStatus(status, reason if is_reason(reason) else str(status), _text(condition.get("message")) or name)


def _cut(message: str) -> str:
    return message if len(message) <= _MOST_OF_EACH else message[: _MOST_OF_EACH - 1] + "…"


def _name(obj: object | None) -> str:
    return "an object" if obj is None else str(reference_to(obj))


def _reason(condition: Condition) -> str:
    return _text(condition.get("reason"))


def _mappings(value: object) -> list[_Map]:
    return [item for item in items(value) if is_mapping(item)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
