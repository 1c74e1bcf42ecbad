"""Table row of a Pod, which summarizes the states of its containers.

Source: Kubernetes pkg/printers/internalversion/printers.go ``printPod``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, items, text
from deltaloop.apiserver.core.kinds.cells import NONE, age, condition

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
