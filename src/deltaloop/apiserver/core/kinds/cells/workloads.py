"""Cells of the kinds that make pods.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deltaloop.apiserver.core.kinds.cells.shared import (
    NONE,
    UNSET,
    Cells,
    Object,
    condition,
    format_labels,
    format_selector,
    since,
    template_cells,
)
from deltaloop.apiserver.core.kinds.human_duration import age
from deltaloop.schemas.json_values import at, integer, items, mapping, text


def _deployment(obj: Object, _: float) -> dict[str, Any]:
    status = at(obj, "status")
    return {
        "Ready": f"{integer(at(status, 'readyReplicas'))}/{_replicas(obj)}",
        "Up-to-date": integer(at(status, "updatedReplicas")),
        "Available": integer(at(status, "availableReplicas")),
        **template_cells(obj),
        "Selector": format_selector(at(obj, "spec", "selector"), empty="", wrong="<invalid>"),
    }


def _replicas(obj: Object) -> int:
    """Return how many replicas an object asks for; one, the default of the API, where it does not say."""
    asked = at(obj, "spec", "replicas")
    return 1 if asked is None else integer(asked)


def _replica_set(obj: Object, _: float) -> dict[str, Any]:
    return {**_replica_counts(obj), "Selector": format_selector(at(obj, "spec", "selector"))}


def _replication_controller(obj: Object, _: float) -> dict[str, Any]:
    # Its selector is a plain map of labels.
    return {**_replica_counts(obj), "Selector": format_labels(at(obj, "spec", "selector"))}


def _replica_counts(obj: Object) -> dict[str, Any]:
    status = at(obj, "status")
    return {
        "Desired": _replicas(obj),
        "Current": integer(at(status, "replicas")),
        "Ready": integer(at(status, "readyReplicas")),
        **template_cells(obj),
    }


def _stateful_set(obj: Object, _: float) -> dict[str, Any]:
    return {"Ready": f"{integer(at(obj, 'status', 'readyReplicas'))}/{_replicas(obj)}", **template_cells(obj)}


def _daemon_set(obj: Object, _: float) -> dict[str, Any]:
    status = at(obj, "status")
    return {
        "Desired": integer(at(status, "desiredNumberScheduled")),
        "Current": integer(at(status, "currentNumberScheduled")),
        "Ready": integer(at(status, "numberReady")),
        "Up-to-date": integer(at(status, "updatedNumberScheduled")),
        "Available": integer(at(status, "numberAvailable")),
        "Node Selector": format_labels(at(obj, "spec", "template", "spec", "nodeSelector")),
        **template_cells(obj),
        "Selector": format_selector(at(obj, "spec", "selector")),
    }


def _job(obj: Object, now: float) -> dict[str, Any]:
    spec, status = at(obj, "spec"), at(obj, "status")
    succeeded, parallelism = integer(at(status, "succeeded")), integer(at(spec, "parallelism"))
    if at(spec, "completions") is not None:
        completions = f"{succeeded}/{integer(at(spec, 'completions'))}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    return {
        "Status": _job_status(obj),
        "Completions": completions,
        "Duration": since(at(status, "startTime"), at(status, "completionTime"), now),
        **template_cells(obj),
        "Selector": format_selector(at(spec, "selector")),
    }


def _job_status(obj: Object) -> str:
    if condition(obj, "Complete") == "True":
        return "Complete"
    if condition(obj, "Failed") == "True":
        return "Failed"
    if at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    named = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((name for name in named if condition(obj, name) == "True"), "Running")


def _cron_job(obj: Object, now: float) -> dict[str, Any]:
    spec, status = at(obj, "spec"), at(obj, "status")
    template = at(spec, "jobTemplate")
    suspend = at(spec, "suspend")
    return {
        "Schedule": text(at(spec, "schedule")),
        "Timezone": text(at(spec, "timeZone")) or NONE,
        "Suspend": str(suspend) if isinstance(suspend, bool) else UNSET,
        "Active": len(items(at(status, "active"))),
        "Last Schedule": age(at(status, "lastScheduleTime"), now, missing=NONE),
        **template_cells(mapping(template)),
        "Selector": format_selector(at(template, "spec", "selector")),
    }


def _revision(obj: Object, _: float) -> dict[str, Any]:
    owners = items(at(obj, "metadata", "ownerReferences"))
    owner = next((item for item in owners if at(item, "controller") is True), None)
    group = text(at(owner, "apiVersion")).rpartition("/")[0]
    kind = text(at(owner, "kind")).lower()
    controller = f"{kind}.{group}/{text(at(owner, 'name'))}" if group else f"{kind}/{text(at(owner, 'name'))}"
    return {"Controller": controller if owner else NONE, "Revision": integer(at(obj, "revision"))}


def _pod_template(obj: Object, _: float) -> dict[str, Any]:
    return {
        **template_cells({"spec": {"template": at(obj, "template")}}),
        "Pod Labels": format_labels(at(obj, "template", "metadata", "labels")),
    }


def _disruption_budget(obj: Object, _: float) -> dict[str, Any]:
    spec = at(obj, "spec")
    return {
        "Min Available": _or_not_set(at(spec, "minAvailable")),
        "Max Unavailable": _or_not_set(at(spec, "maxUnavailable")),
        "Allowed Disruptions": integer(at(obj, "status", "disruptionsAllowed")),
    }


def _or_not_set(value: object) -> str:
    return "N/A" if value is None else str(value)


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "PodTemplate"): _pod_template,
    ("", "ReplicationController"): _replication_controller,
    ("apps", "ControllerRevision"): _revision,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("policy", "PodDisruptionBudget"): _disruption_budget,
}
