from __future__ import annotations

from typing import Any

import pytest

from deltaloop.apiserver.core.kinds.pod import pod_cells

NOW = 3600.0
RUNNING: dict[str, Any] = {"ready": True, "state": {"running": {}}, "restartCount": 0}


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    return {"ready": False, "state": {"waiting": {"reason": reason}}, **more}


def ended(code: int, **more: Any) -> dict[str, Any]:
    return {"ready": False, "state": {"terminated": {"exitCode": code, **more}}}


def row(
    *containers: dict[str, Any],
    init: Any = None,
    spec: Any = None,
    metadata: Any = None,
    **status: Any,
) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "metadata": {"name": "p", "creationTimestamp": "1970-01-01T00:59:00Z", **(metadata or {})},
        "spec": {"containers": [{"name": f"c{n}"} for n in range(len(containers) or 1)], **(spec or {})},
        "status": {
            "phase": "Running",
            "containerStatuses": list(containers),
            "initContainerStatuses": init or [],
            **status,
        },
    }
    return {"Name": "p", "Age": "60s", **pod_cells(pod, NOW)}


def test_running_pod() -> None:
    status: dict[str, Any] = {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "podIP": "10.0.0.1"}
    assert row(RUNNING, RUNNING, spec={"nodeName": "n1"}, **status) == {
        "Name": "p",
        "Ready": "2/2",
        "Status": "Running",
        "Restarts": "0",
        "Age": "60s",
        "IP": "10.0.0.1",
        "Node": "n1",
        "Nominated Node": "<none>",
        "Readiness Gates": "<none>",
    }


def test_unscheduled_pod() -> None:
    found = row(phase="Pending")
    assert (found["Ready"], found["Status"], found["IP"], found["Node"]) == ("0/1", "Pending", "<none>", "<none>")
    gated = row(phase="Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}])
    assert gated["Status"] == "SchedulingGated"


@pytest.mark.parametrize(
    ("containers", "status"),
    [
        ([waiting("CrashLoopBackOff"), RUNNING], "CrashLoopBackOff"),
        ([RUNNING, waiting("ImagePullBackOff")], "ImagePullBackOff"),
        ([waiting("First"), waiting("Second")], "First"),
        ([ended(0, reason="Completed")], "Completed"),
        ([ended(1)], "ExitCode:1"),
        ([ended(137, signal=9)], "Signal:9"),
        ([ended(1, reason="OOMKilled")], "OOMKilled"),
    ],
)
def test_container_reason_is_the_pod_status(containers: list[dict[str, Any]], status: str) -> None:
    assert row(*containers)["Status"] == status


def test_pod_with_a_completed_container_is_running() -> None:
    done = ended(0, reason="Completed")
    assert row(done, RUNNING)["Status"] == "NotReady"
    ready = [{"type": "Ready", "status": "True"}]
    found = row(done, RUNNING, conditions=ready)
    assert (found["Status"], found["Ready"]) == ("Running", "1/2")


@pytest.mark.parametrize(
    ("init", "status"),
    [
        ([ended(0), RUNNING], "Init:1/2"),
        ([ended(1)], "Init:ExitCode:1"),
        ([ended(1, signal=9)], "Init:Signal:9"),
        ([ended(1, reason="Error")], "Init:Error"),
        ([waiting("ImagePullBackOff")], "Init:ImagePullBackOff"),
        ([waiting("PodInitializing")], "Init:0/2"),
    ],
)
def test_init_containers_come_first(init: list[dict[str, Any]], status: str) -> None:
    found = row(waiting("PodInitializing"), init=init, spec={"initContainers": [{"name": "a"}, {"name": "b"}]})
    assert found["Status"] == status


def test_sidecar_counts_as_a_ready_container() -> None:
    sidecar: dict[str, Any] = {"name": "s", "started": True, "ready": True, "restartCount": 2, "state": {"running": {}}}
    found = row(RUNNING, init=[sidecar], spec={"initContainers": [{"name": "s", "restartPolicy": "Always"}]})
    assert (found["Ready"], found["Status"], found["Restarts"]) == ("2/2", "Running", "2")


def test_restarts_contain_the_time_of_the_last_restart() -> None:
    times = ["1970-01-01T00:50:00Z", "1970-01-01T00:59:00Z"]
    containers = [
        {**RUNNING, "restartCount": 2, "lastState": {"terminated": {"finishedAt": finished}}} for finished in times
    ]
    assert row(*containers)["Restarts"] == "4 (60s ago)"


def test_terminating_pod() -> None:
    deleted = {"deletionTimestamp": "1970-01-01T00:59:30Z"}
    assert row(RUNNING, metadata=deleted)["Status"] == "Terminating"
    assert row(RUNNING, metadata=deleted, reason="NodeLost")["Status"] == "Unknown"
    assert row(phase="Succeeded", metadata=deleted)["Status"] == "Succeeded"


def test_readiness_gates() -> None:
    spec = {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    assert row(RUNNING, spec=spec, conditions=[{"type": "a", "status": "True"}])["Readiness Gates"] == "1/2"
