"""Which events a step's programs write: those to wait for, and those of chance. No processes, no files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

# Reasons of events that one run has and another has not, as each controller sees changes at a time of its own.
OF_CHANCE: Final[Mapping[str, str]] = {
    "CalculateExpectedPodCountFailed": "a budget counts a Pod whose Deployment is not known yet, or no more",
    "FailedScheduling": "a Pod is there before what it needs, such as its claim or a node without taints",
    "FailedToUpdateEndpoint": "two changes of a Service's Pods come close to each other",
    "FailedToUpdateEndpointSlices": "as for Endpoints",
    "NoPods": "a budget is counted before its Pods are there",
    "SuccessfulDelete": "a scale is undone before the ReplicaSet acts, or after it",
    "UnexpectedJob": "a CronJob sees the Job that was made of it by hand only if that runs long enough",
}
# Recorders write this in front of the eleventh event of a kind: how many there are is chance.
_COMBINED: Final = "(combined from similar events)"

_SCHEDULED: Final = "Pod Normal Scheduled  default-scheduler"
_ROLLOUT: Final = (
    "Deployment Normal ScalingReplicaSet deployment-controller deployment-controller",
    "ReplicaSet Normal SuccessfulCreate replicaset-controller replicaset-controller",
    _SCHEDULED,
)
_JOB: Final = (
    "Job Normal SuccessfulCreate job-controller job-controller",
    "Job Normal Completed job-controller job-controller",
    _SCHEDULED,
)
_STATEFUL: Final = "StatefulSet Normal SuccessfulCreate statefulset-controller statefulset-controller"
_DAEMON: Final = "DaemonSet Normal SuccessfulCreate daemonset-controller daemonset-controller"
# Of each step. Programs write them after what they are about, some time later: a step waits until they are there.
AWAITED: Final[Mapping[str, tuple[str, ...]]] = {
    "deployment": _ROLLOUT,
    "services": _ROLLOUT,
    "rolling_update": _ROLLOUT,
    "statefulset": (_STATEFUL, _SCHEDULED),
    "daemonset": (_DAEMON, _SCHEDULED),
    "jobs": _JOB,
    "cronjobs": (
        "CronJob Normal SuccessfulCreate cronjob-controller cronjob-controller",
        "CronJob Normal SawCompletedJob cronjob-controller cronjob-controller",
        *_JOB,
    ),
    "eviction": _ROLLOUT,
    "drain": (*_ROLLOUT, _DAEMON),
    "garbage": _ROLLOUT,
    "quota": (_SCHEDULED,),
    "helm_3": (*_ROLLOUT, *_JOB),
    "helm_4": (*_ROLLOUT, *_JOB),
    "sample_controller": (*_ROLLOUT, "Foo Normal Synced sample-controller sample-controller"),
}


def kinds_of_events(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return which events there are, each kind once: how many, and their words, depend on which program was quicker."""
    found: set[str] = set()
    for event in events:
        if event["reason"] in OF_CHANCE or str(event.get("message", "")).startswith(_COMBINED):
            continue
        source, reporter = event.get("source", {}), event.get("reportingComponent", "")
        parts = (event["involvedObject"]["kind"], event["type"], event["reason"], source.get("component", ""), reporter)
        found.add(" ".join(parts))
    return sorted(found)
