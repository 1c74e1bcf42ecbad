"""What an object says when all that follows from its spec has happened: no processes, no files.

What is recorded is read again until it is like that. Then it no longer matters which controller was quicker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import deltaloop as dl
from deltaloop.api.json_values import at, integer, items, mapping, text

Object = dict[str, Any]


def is_settled(obj: Object, pods: Iterable[Object] = ()) -> bool:
    """Tell whether a status is the last word about its spec; of kinds that nothing acts on, it always is.

    Args:
        obj: An object as a server holds it.
        pods: Those of its namespace; a budget counts them.
    """
    kind = obj.get("kind")
    if kind == "PodDisruptionBudget":
        return _budget_is_settled(obj, pods)
    rule = _RULES.get(str(kind))
    return rule is None or rule(obj)


def is_ready(obj: Object | dl.Resource) -> bool:
    """Tell whether a Pod or a Node says that it is ready, and is not on its way out."""
    return has_condition("Ready")(obj) and "deletionTimestamp" not in obj["metadata"]


def has_condition(kind: str) -> Callable[[Object | dl.Resource], bool]:
    """Return what tells whether an object has a condition that is true."""

    def has(obj: Object | dl.Resource) -> bool:
        conditions = obj.get("status", {}).get("conditions", [])
        return any(each["type"] == kind and each["status"] == "True" for each in conditions)

    return has


def _reason(obj: Object, kind: str) -> str:
    found = items(mapping(obj.get("status")).get("conditions"))
    return next((text(at(each, "reason")) for each in found if at(each, "type") == kind), "")


def _is_observed(obj: Object) -> bool:
    return bool(mapping(obj.get("status")).get("observedGeneration") == obj["metadata"]["generation"])


def _counts(obj: Object, *names: str) -> set[int]:
    status = mapping(obj.get("status"))
    return {integer(status.get(name)) for name in names}


def _deployment_is_settled(obj: Object) -> bool:
    all_of_it = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    paused = obj["spec"].get("paused")
    return (
        _is_observed(obj)
        and _counts(obj, *all_of_it) == {obj["spec"]["replicas"]}
        and _counts(obj, "unavailableReplicas", "terminatingReplicas") == {0}
        and _reason(obj, "Progressing") == ("DeploymentPaused" if paused else "NewReplicaSetAvailable")
    )


def _replica_set_is_settled(obj: Object) -> bool:
    all_of_it = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    return (
        _is_observed(obj)
        and _counts(obj, *all_of_it) == {obj["spec"]["replicas"]}
        and _counts(obj, "terminatingReplicas") == {0}
    )


def _stateful_set_is_settled(obj: Object) -> bool:
    all_of_it = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
    return _is_observed(obj) and _counts(obj, *all_of_it) == {obj["spec"]["replicas"]}


def _daemon_set_is_settled(obj: Object) -> bool:
    all_of_it = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberReady",
        "numberAvailable",
    )
    return (
        _is_observed(obj)
        and len(_counts(obj, *all_of_it)) == 1
        and _counts(obj, "numberMisscheduled", "numberUnavailable") == {0}
    )


def _job_is_settled(obj: Object) -> bool:
    return (
        has_condition("Complete")(obj)
        and _counts(obj, "active", "ready", "terminating") == {0}
        and not obj["status"].get("uncountedTerminatedPods")
    )


def _pod_is_settled(obj: Object) -> bool:
    # The finalizer of a Job's Pod goes when the Job has counted it.
    done = at(obj.get("status"), "phase") == "Succeeded" and not obj["metadata"].get("finalizers")
    return "deletionTimestamp" not in obj["metadata"] and (done or is_ready(obj))


def _budget_is_settled(obj: Object, pods: Iterable[Object]) -> bool:
    wanted = dict(obj["spec"]["selector"]["matchLabels"]).items()
    chosen = [pod for pod in pods if wanted <= dict(pod["metadata"].get("labels", {})).items()]
    return (
        _is_observed(obj)
        and all(map(is_ready, chosen))
        and _counts(obj, "currentHealthy", "expectedPods") == {len(chosen)}
        and not obj["status"].get("disruptedPods")
        # After a failure, it says SyncFailed for a while.
        and _reason(obj, "DisruptionAllowed") in {"SufficientPods", "InsufficientPods"}
    )


_RULES: Final[Mapping[str, Callable[[Object], bool]]] = {
    "Deployment": _deployment_is_settled,
    "ReplicaSet": _replica_set_is_settled,
    "StatefulSet": _stateful_set_is_settled,
    "DaemonSet": _daemon_set_is_settled,
    "Job": _job_is_settled,
    "CronJob": lambda obj: not at(obj.get("status"), "active"),
    "Pod": _pod_is_settled,
    "Node": is_ready,
    "PersistentVolumeClaim": lambda obj: bool(at(obj.get("status"), "phase") == "Bound"),
    # sample-controller's.
    "Foo": lambda obj: bool(at(obj.get("status"), "availableReplicas") == obj["spec"]["replicas"]),
}
