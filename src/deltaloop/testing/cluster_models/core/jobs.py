"""Job controller: create Pods until enough have succeeded or too many have failed.

Source: pkg/controller/job/job_controller.go (``syncJob``, ``trackJobStatusAndRemoveFinalizers``), indexed_job_utils.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.testing.cluster_models.core.cluster_view import (
    REACTS,
    ClusterObject,
    ClusterView,
    EnvironmentStep,
    conditions,
    creates,
    deletes,
    patches,
    reports,
)
from deltaloop.testing.cluster_models.core.pods import is_active, is_ready
from deltaloop.testing.cluster_models.core.workloads import pod_of

_TRACKING: Final = "batch.kubernetes.io/job-tracking"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_LIMIT: Final = 6
_FIRST_BACKOFF: Final = 10.0
_LONGEST_BACKOFF: Final = 600.0


def jobs(view: ClusterView) -> list[EnvironmentStep]:
    steps = [step for each in view.of(kinds.JOB) for step in _of(each, view)]
    there = {each.uid for each in view.of(kinds.JOB)}
    orphans = [pod for pod in view.of(kinds.POD) if _tracked(pod) and pod.owner not in there]
    return [*steps, *(_untracked(pod) for pod in orphans)]


def _tracked(pod: ClusterObject) -> bool:
    return _TRACKING in texts(pod.metadata.get("finalizers"))


def _untracked(pod: ClusterObject) -> EnvironmentStep:
    finalizers = [name for name in texts(pod.metadata.get("finalizers")) if name != _TRACKING]
    return patches(pod, {"metadata": {"finalizers": finalizers}}, f"{pod} is counted")


def _of(owner: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    pods = view.controlled_by(owner, kinds.POD)
    ended = owner.condition("Complete") == "True" or owner.condition("Failed") == "True"
    if owner.deleted or ended:
        return [_untracked(pod) for pod in pods if _tracked(pod) and (pod.deleted or not is_active(pod))]
    counted = _Counted(owner, pods)
    verdict = _verdict(owner, counted, pods)
    steps = [_untracked(pod) for pod in pods if pod.uid in counted.noted and _tracked(pod)]
    active = [pod for pod in pods if is_active(pod)]
    if verdict or owner.spec.get("suspend"):
        # Record the reason before deleting Pods: without them it could not be determined.
        noted = "True" in (owner.condition("SuccessCriteriaMet"), owner.condition("FailureTarget"))
        steps += [deletes(pod, f"{owner} deletes {pod}") for pod in active if noted or not verdict]
    else:
        steps += _next(owner, counted, active)
    return [*steps, *_status(owner, counted, pods, verdict, view)]


class _Counted:
    """Numbers of ended Pods, and the recorded uids that are not counted yet."""

    def __init__(self, owner: ClusterObject, pods: list[ClusterObject]) -> None:
        there = {pod.uid: pod for pod in pods}
        uncounted = owner.status.get("uncountedTerminatedPods")
        self.uncounted: dict[str, list[str]] = {}
        self.numbers: dict[str, int] = {}
        self.noted: set[str] = set()
        indexes = _parsed(text(owner.status.get("completedIndexes")))
        for word, phase in (("succeeded", "Succeeded"), ("failed", "Failed")):
            before = texts(at(uncounted, word))
            self.noted |= {*before}
            waiting = [uid for uid in before if uid in there and _tracked(there[uid])]
            self.numbers[word] = integer(owner.status.get(word)) + len(before) - len(waiting)
            self.uncounted[word] = waiting
            more = [pod for pod in pods if _tracked(pod) and pod.uid not in self.noted and _ends(pod) == phase]
            self.uncounted[word] += [pod.uid for pod in more]
            if word == "succeeded":
                indexes |= {_index(pod) for pod in (*more, *(there[uid] for uid in waiting))} - {None}
        restarts = [integer(at(each, "restartCount")) for pod in pods for each in _containers(pod) if is_active(pod)]
        self.indexes: set[int] = {each for each in indexes if each is not None}
        self.restarts = sum(restarts)

    def total(self, word: str) -> int:
        return self.numbers[word] + len(self.uncounted[word])


def _containers(pod: ClusterObject) -> list[object]:
    return items(pod.status.get("containerStatuses"))


def _ends(pod: ClusterObject) -> str:
    """Return the final phase of a Pod; a Pod deleted before it got a node has failed."""
    if pod.phase in ("Succeeded", "Failed"):
        return pod.phase
    return "Failed" if pod.deleted and not pod.spec.get("nodeName") else ""


def _is_indexed(owner: ClusterObject) -> bool:
    return owner.spec.get("completionMode") == "Indexed"


def _index(pod: ClusterObject) -> int | None:
    said = pod.annotations.get(_INDEX, "")
    return int(said) if said.isdecimal() else None


def _verdict(owner: ClusterObject, counted: _Counted, pods: list[ClusterObject]) -> str:
    """Return ``Complete`` or ``Failed``; empty while the Job runs."""
    limit = owner.spec.get("backoffLimit")
    most = limit if isinstance(limit, int) else _LIMIT
    wanted = owner.spec.get("completions")
    done = len(counted.indexes) if _is_indexed(owner) else counted.total("succeeded")
    if owner.condition("FailureTarget") == "True":
        return "Failed"
    if done >= integer(wanted) if wanted is not None else done and not any(map(is_active, pods)):
        return "Complete"
    return "Failed" if counted.total("failed") > most or counted.restarts >= max(1, most) else ""


def _next(owner: ClusterObject, counted: _Counted, active: list[ClusterObject]) -> list[EnvironmentStep]:
    wanted, parallel = owner.spec.get("completions"), owner.spec.get("parallelism")
    most = integer(parallel) if parallel is not None else 1
    if wanted is not None:
        done = len(counted.indexes) if _is_indexed(owner) else counted.total("succeeded")
        most = min(most, integer(wanted) - done)
    elif counted.total("succeeded"):
        most = len(active)  # workers of a queue end on their own
    steps: list[EnvironmentStep] = [deletes(pod, f"{owner} deletes {pod}") for pod in active[max(0, most) :]]
    taken = {*counted.indexes, *map(_index, active)}
    free = [index for index in range(integer(wanted)) if index not in taken]
    failed = counted.total("failed")
    for number in range(len(active), most):
        body = pod_of(owner)
        metadata = mapping(body["metadata"])
        metadata |= {"finalizers": [*texts(metadata.get("finalizers")), _TRACKING]}
        if _is_indexed(owner):
            index = str(free[number - len(active)])
            metadata["generateName"] = f"{owner.name}-{index}-"
            metadata["annotations"] = {**mapping(metadata.get("annotations")), _INDEX: index}
            metadata["labels"] = {**mapping(metadata.get("labels")), _INDEX: index}
        made = creates(owner, kinds.POD, body, f"{owner} makes Pod {counted.total('succeeded') + failed + number + 1}")
        steps.append(_later(made, failed))
    return steps


def _later(step: EnvironmentStep, failed: int) -> EnvironmentStep:
    if not failed:
        return step
    pause = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2.0 ** (failed - 1))
    takes = (pause + REACTS[0], pause + REACTS[1])
    return EnvironmentStep(about=step.about, told=step.told, takes=takes, write=step.write)


def _status(
    owner: ClusterObject, counted: _Counted, pods: list[ClusterObject], verdict: str, view: ClusterView
) -> list[EnvironmentStep]:
    active = [pod for pod in pods if is_active(pod)]
    wanted: dict[str, tuple[str, str, str]] = {}
    ending = [pod for pod in pods if pod.deleted and pod.phase not in ("Succeeded", "Failed")]
    waits = any(counted.uncounted.values()) or bool(active) or bool(ending)
    if verdict == "Complete":
        told = ("True", "CompletionsReached", "Reached expected number of succeeded pods")
        wanted["SuccessCriteriaMet"] = told
        wanted |= {} if waits else {"Complete": told}
    elif verdict == "Failed":
        told = ("True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        wanted["FailureTarget"] = told
        wanted |= {} if waits else {"Failed": told}
    elif owner.spec.get("suspend") or owner.condition("Suspended"):
        suspended = bool(owner.spec.get("suspend"))
        reason, message = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
        wanted["Suspended"] = (str(suspended), reason, message)
    started = None if owner.spec.get("suspend") else owner.status.get("startTime") or view.instant
    status: dict[str, object] = {
        **owner.status,
        "active": len(active),
        "ready": sum(map(is_ready, active)),
        "terminating": len(ending),
        "succeeded": counted.numbers["succeeded"],
        "failed": counted.numbers["failed"],
        "uncountedTerminatedPods": {word: uids for word, uids in counted.uncounted.items() if uids},
        "startTime": started,
        "completedIndexes": _written(counted.indexes) if _is_indexed(owner) else None,
        "conditions": _probed(conditions(owner, view.instant, wanted), view.instant),
    }
    if "Complete" in wanted:
        status["completionTime"] = view.instant
    return reports(owner, status)


def _probed(found: list[dict[str, object]], instant: str) -> list[dict[str, object]]:
    return [{**each, "lastProbeTime": each.get("lastProbeTime") or instant} for each in found]


def _parsed(said: str) -> set[int | None]:
    found: set[int | None] = set()
    for part in filter(None, said.split(",")):
        first, _, last = part.partition("-")
        found |= {*range(int(first), int(last or first) + 1)}
    return found


def _written(indexes: set[int]) -> str:
    """Format indexes like Kubernetes, such as ``0-2,4``."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
