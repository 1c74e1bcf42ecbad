from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from deltaloop.api.conditions import check_condition, check_condition_type
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kstatus import KStatus, ObjectStatus, combined_status, object_status
from deltaloop.api.resource import Resource
from deltaloop.api.times import parse_time
from deltaloop.client.core.wait_conditions import current

Judge = Callable[..., ObjectStatus]
CREATED = "2026-01-02T03:04:05Z"


def true(*types: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": each, "status": "True", **more} for each in types]


def false(type_name: str, reason: str = "Why", **more: Any) -> dict[str, Any]:
    return {"type": type_name, "status": "False", "reason": reason, **more}


# Of each kind an object that is current.
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "spec": {"replicas": 3, "progressDeadlineSeconds": 600},
    "status": {
        "observedGeneration": 2,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "conditions": [
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            {"type": "Available", "status": "True"},
        ],
    },
}
STATEFUL_SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "spec": {"replicas": 3},
    "status": {
        "observedGeneration": 2,
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "currentRevision": "b",
        "updateRevision": "b",
    },
}
PARTITION = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}}
REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "spec": {"replicas": 3},
    "status": {"replicas": 3, "fullyLabeledReplicas": 3, "availableReplicas": 3, "readyReplicas": 3},
}
DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "status": {
        "observedGeneration": 2,
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 3,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
        "numberReady": 3,
    },
}
POD = {"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running", "conditions": true("Ready")}}
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Bound"}}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "status": {"startTime": CREATED, "active": 1}}
BALANCER = {"apiVersion": "v1", "kind": "Service", "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "status": {"conditions": true("NamesAccepted", "Established")},
}
BUDGET = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "status": {"observedGeneration": 2}}
CUSTOM = {"apiVersion": "example.com/v1", "kind": "Database"}
SECRET = {"apiVersion": "v1", "kind": "Secret"}
CRON_JOB = {"apiVersion": "batch/v1", "kind": "CronJob"}
BASES: list[dict[str, Any]] = [
    DEPLOYMENT, STATEFUL_SET, REPLICA_SET, DAEMON_SET, POD, CLAIM, JOB, BALANCER, DEFINITION, BUDGET, CUSTOM, SECRET,
    CRON_JOB,
]  # fmt: skip

CURRENT = ("Current", "Current")


def waits(reason: str) -> tuple[str, str]:
    return ("InProgress", reason)


def fails(reason: str) -> tuple[str, str]:
    return ("Failed", reason)


def status(**fields: Any) -> dict[str, Any]:
    return {"status": fields}


# What is changed of it, and what it is then. None takes a field away.
CASES: list[tuple[dict[str, Any], dict[str, Any], tuple[str, str]]] = [
    *((base, {}, CURRENT) for base in BASES),
    *((base, {"metadata": {"deletionTimestamp": CREATED}}, ("Terminating", "Terminating")) for base in BASES),
    *((base, status(observedGeneration=1), waits("LatestGenerationNotObserved")) for base in BASES),
    *((base, status(observedGeneration=3), waits("LatestGenerationNotObserved")) for base in BASES),
    *((base, status(conditions=true("Reconciling", reason="Busy")), waits("Busy")) for base in BASES),
    *((base, status(conditions=true("Stalled", reason="Stuck")), fails("Stuck")) for base in BASES),
    (CUSTOM, status(conditions=true("Ready")), CURRENT),
    (CUSTOM, status(conditions=[false("Ready", "Creating")]), waits("Creating")),
    (CUSTOM, status(conditions=[{"type": "Ready", "status": "Unknown"}]), waits("InProgress")),
    (CUSTOM, status(conditions=[false("Ready", "two words")]), waits("InProgress")),
    (CUSTOM, status(conditions=true("Ready", observedGeneration=1)), waits("LatestGenerationNotObserved")),
    (CUSTOM, status(conditions=[false("Ready", observedGeneration=1)]), waits("LatestGenerationNotObserved")),
    (CUSTOM, status(conditions=true("Stalled", observedGeneration=1)), CURRENT),
    (CUSTOM, status(conditions=[false("Reconciling"), false("Stalled"), false("Other")]), CURRENT),
    (CUSTOM, {"status": "odd"}, CURRENT),
    (CUSTOM, status(conditions=["odd", None, {}]), CURRENT),
    (CUSTOM, {"metadata": {"generation": None}, **status(observedGeneration=7)}, CURRENT),
    # A ConfigMap of another group is no ConfigMap, and a kind without a group none of a group.
    ({"apiVersion": "example.com/v1", "kind": "Pod"}, {}, CURRENT),
    (DEPLOYMENT, {"status": None}, waits("LessReplicas")),
    (DEPLOYMENT, status(replicas=2), waits("LessReplicas")),
    (DEPLOYMENT, status(updatedReplicas=2), waits("LessUpdated")),
    (DEPLOYMENT, status(replicas=4), waits("ExtraPods")),
    (DEPLOYMENT, status(availableReplicas=2), waits("LessAvailable")),
    (DEPLOYMENT, status(readyReplicas=2), waits("LessReady")),
    (DEPLOYMENT, status(conditions=true("Available")), waits("ReplicaSetNotAvailable")),
    (DEPLOYMENT, status(conditions=true("Available", "Progressing", reason="New")), waits("ReplicaSetNotAvailable")),
    (DEPLOYMENT, {"spec": {"progressDeadlineSeconds": None}, **status(conditions=true("Available"))}, CURRENT),
    (DEPLOYMENT, {"spec": {"progressDeadlineSeconds": 2**31 - 1}, **status(conditions=true("Available"))}, CURRENT),
    (DEPLOYMENT, {"spec": {"progressDeadlineSeconds": None}, **status(conditions=[])}, waits("DeploymentNotAvailable")),
    (DEPLOYMENT, {"spec": {"replicas": None}}, waits("ExtraPods")),
    (
        DEPLOYMENT,
        status(replicas=0, conditions=[false("Progressing", "ProgressDeadlineExceeded")]),
        fails("ProgressDeadlineExceeded"),
    ),
    (STATEFUL_SET, {"status": None}, waits("LessReplicas")),
    (STATEFUL_SET, status(replicas=2), waits("LessReplicas")),
    (STATEFUL_SET, status(readyReplicas=2), waits("LessReady")),
    (STATEFUL_SET, status(replicas=4), waits("ExtraPods")),
    (STATEFUL_SET, status(currentReplicas=2), waits("LessCurrent")),
    (STATEFUL_SET, status(updateRevision="c"), waits("RevisionMismatch")),
    (STATEFUL_SET, {"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": None}, CURRENT),
    (STATEFUL_SET, {**PARTITION, **status(updatedReplicas=0, currentReplicas=0)}, waits("PartitionRollout")),
    (STATEFUL_SET, {**PARTITION, **status(updatedReplicas=1, currentReplicas=0, updateRevision="c")}, CURRENT),
    (REPLICA_SET, {"status": None}, waits("LessLabelled")),
    (REPLICA_SET, status(fullyLabeledReplicas=2), waits("LessLabelled")),
    (REPLICA_SET, status(availableReplicas=2), waits("LessAvailable")),
    (REPLICA_SET, status(readyReplicas=2), waits("LessReady")),
    (REPLICA_SET, status(replicas=4), waits("ExtraPods")),
    (REPLICA_SET, status(conditions=true("ReplicaFailure")), waits("ReplicaFailure")),
    (REPLICA_SET, status(conditions=[false("ReplicaFailure")]), CURRENT),
    (DAEMON_SET, {"metadata": {"generation": None}}, waits("NoGeneration")),
    (DAEMON_SET, {"status": None}, waits("NoObservedGeneration")),
    (DAEMON_SET, status(desiredNumberScheduled=None), waits("NoDesiredNumber")),
    (DAEMON_SET, status(desiredNumberScheduled=0), CURRENT),
    (DAEMON_SET, status(currentNumberScheduled=2), waits("LessCurrent")),
    (DAEMON_SET, status(updatedNumberScheduled=2), waits("LessUpdated")),
    (DAEMON_SET, status(numberAvailable=2), waits("LessAvailable")),
    (DAEMON_SET, status(numberReady=2), waits("LessReady")),
    (POD, {"status": None}, waits("PodNotObserved")),
    (POD, status(phase="Succeeded", conditions=[]), CURRENT),
    (POD, status(phase="Failed", conditions=[]), CURRENT),
    (POD, status(phase="Odd"), ("Unknown", "PodPhaseUnknown")),
    (POD, status(conditions=[false("Ready")]), waits("PodRunningNotReady")),
    (
        POD,
        status(
            conditions=[],
            containerStatuses=["odd", {"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
        ),
        fails("ContainerCrashLooping"),
    ),
    (
        POD,
        status(conditions=[], containerStatuses=[{"name": "web", "state": {"waiting": {"reason": "Pulling"}}}]),
        waits("PodRunningNotReady"),
    ),
    (POD, status(phase="Pending"), waits("PodPending")),
    (POD, status(phase="Pending", conditions=[false("PodScheduled", "Gated")]), waits("PodPending")),
    (POD, status(phase="Pending", conditions=[false("PodScheduled", "Unschedulable")]), fails("PodUnschedulable")),
    (CLAIM, {"status": None}, waits("NotBound")),
    (CLAIM, status(phase="Pending"), waits("NotBound")),
    (JOB, {"status": None}, waits("JobNotStarted")),
    (JOB, status(startTime=None, conditions=true("Complete")), CURRENT),
    (JOB, status(startTime=None, conditions=true("Suspended")), CURRENT),
    (JOB, status(conditions=[false("Failed"), false("Complete")]), CURRENT),
    (JOB, status(conditions=true("Failed")), fails("JobFailed")),
    (BALANCER, {"spec": {"clusterIP": None}}, waits("NoIPAssigned")),
    (BALANCER, {"spec": None}, CURRENT),
    (DEFINITION, {"status": None}, waits("Installing")),
    (DEFINITION, status(conditions=[*true("NamesAccepted"), false("Established", "Installing")]), waits("Installing")),
    (DEFINITION, status(conditions=[*true("NamesAccepted"), false("Established", "Broken")]), fails("Broken")),
    (DEFINITION, status(conditions=[false("NamesAccepted", "Conflict")]), fails("Conflict")),
]


def changed(base: dict[str, Any], change: dict[str, Any]) -> Resource:
    fields = {"metadata": {"name": "a", "namespace": "shop", "generation": 2, "creationTimestamp": CREATED}, **base}
    for part, value in change.items():
        whole = fields.get(part)
        fields[part] = {**whole, **value} if isinstance(whole, dict) and isinstance(value, dict) else value
    return Resource.from_dict(fields)


def wrong_verdicts(judge: Judge) -> list[str]:
    found: list[str] = []
    for base, change, expected in CASES:
        verdict = judge(changed(base, change))
        if (verdict.status, verdict.reason) != expected:
            found.append(f"{base['kind']} {change}: {verdict} instead of {expected}")
    return found


def test_object_status_matches_kstatus() -> None:
    assert wrong_verdicts(object_status) == []
    for base, change, _ in CASES:
        verdict = object_status(changed(base, change))
        check_condition("Ready", str(verdict.is_current), reason=verdict.reason, message=verdict.message)


def test_unschedulable_pod_has_grace_period() -> None:
    pod = changed(POD, status(phase="Pending", conditions=[false("PodScheduled", "Unschedulable")]))
    created = parse_time(CREATED)
    early = object_status(pod, now=created + timedelta(seconds=14.9))
    assert (early.status, early.reason) == (KStatus.IN_PROGRESS, "PodNotScheduled")
    assert object_status(pod, now=created + timedelta(seconds=15)).status is KStatus.FAILED


def test_missing_object_is_not_found() -> None:
    assert object_status(None).status is KStatus.NOT_FOUND


def test_combined_status_is_worst_status() -> None:
    good, waiting = changed(DEPLOYMENT, {}), changed(STATEFUL_SET, status(readyReplicas=1))
    failed, odd = changed(JOB, status(conditions=true("Failed"))), changed(POD, status(phase="Odd"))
    leaving = changed(CLAIM, {"metadata": {"name": "a", "namespace": "shop", "deletionTimestamp": CREATED}})
    assert combined_status([]).is_current
    assert combined_status([good, good]).is_current
    assert combined_status([good, waiting]) == ObjectStatus(
        KStatus.IN_PROGRESS,
        "LessReady",
        "1 of 2 are not current: StatefulSet shop/a is InProgress: readyReplicas is 1 of 3",
    )
    assert combined_status([good, None]).status is KStatus.IN_PROGRESS
    assert combined_status([leaving]).status is KStatus.IN_PROGRESS
    assert combined_status([waiting, odd]).status is KStatus.UNKNOWN
    whole = combined_status([waiting, odd, good, failed])
    assert (whole.status, whole.reason) == (KStatus.FAILED, "Failed")
    assert [name in whole.message for name in ("StatefulSet", "Pod", "Deployment", "Job")] == [True, True, False, True]
    many = combined_status([waiting] * 14).message
    assert many.count("StatefulSet") == 10
    assert many.endswith("and 4 more")
    wordy = changed(CUSTOM, status(conditions=true("Stalled", message="a" * 32768)))
    assert len(combined_status([wordy] * 20).message) < 2700


def test_current_condition_can_be_awaited() -> None:
    condition = current()
    assert condition.is_met(changed(DEPLOYMENT, {}))
    waiting = changed(DEPLOYMENT, status(readyReplicas=2))
    assert not condition.is_met(waiting)
    assert condition.describe() == "being current"
    assert condition.shows(waiting) == "it is InProgress"


@pytest.mark.parametrize(
    ("type_name", "state", "reason", "message"),
    [
        ("", "True", "Why", ""),
        ("two words", "True", "Why", ""),
        ("Example.com/Ready", "True", "Why", ""),
        ("a" * 317, "True", "Why", ""),
        ("Ready\n", "True", "Why", ""),
        ("Ready", "true", "Why", ""),
        ("Ready", "True", "", ""),
        ("Ready", "True", "two words", ""),
        ("Ready", "True", "1st", ""),
        ("Ready", "True", "Why:", ""),
        ("Ready", "True", "Why\n", ""),
        ("Ready", "True", "a" * 1025, ""),
        ("Ready", "True", "Why", "a" * 32769),
    ],
)
def test_invalid_condition_is_rejected(type_name: str, state: str, reason: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError):
        check_condition(type_name, state, reason=reason, message=message)


def test_valid_condition_is_accepted() -> None:
    check_condition("example.com/Ready.v1-x", "Unknown", reason="A:b,c_", message="ä" * 32768)
    check_condition_type("a" * 316)
