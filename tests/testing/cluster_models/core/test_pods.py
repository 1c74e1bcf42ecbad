"""Scheduler and kubelet."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from tests.testing.cluster_models.core.naive_cluster import NaiveCluster, ready

CONTAINERS: list[dict[str, Any]] = [{"name": "c", "image": "1"}]


def pod(cluster: NaiveCluster, name: str = "a", **spec: Any) -> dict[str, Any]:
    return cluster.create(kinds.POD, name, spec={"containers": CONTAINERS, **spec})


@pytest.mark.parametrize("seed", range(5))
def test_pod_is_scheduled_runs_and_becomes_ready(seed: int) -> None:
    cluster = NaiveCluster("pods", seed=seed)
    found = pod(cluster)
    cluster.settle()
    assert [line.partition(" ")[2] for line in cluster.log] == [
        "Pod a is scheduled to a node",
        "Pod a starts",
        "Pod a becomes ready",
    ]
    assert 0.7 < cluster.now < 6.2
    assert found["spec"]["nodeName"] == "node-1"
    assert found["status"]["phase"] == "Running"
    assert ready(found)
    assert found["status"]["podIP"].startswith("10.244.")
    assert [each["ready"] for each in found["status"]["containerStatuses"]] == [True]


def test_different_seeds_give_different_times() -> None:
    ends: set[float] = set()
    for seed in (1, 2, 1):
        cluster = NaiveCluster("pods", seed=seed)
        pod(cluster)
        cluster.settle()
        ends.add(cluster.now)
    assert len(ends) == 2


def test_pod_gets_emptiest_fitting_node() -> None:
    cluster = NaiveCluster("pods")
    nodes: dict[str, dict[str, Any]] = {
        "cordoned": {"spec": {"unschedulable": True}},
        "lost": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        "one": {"metadata": {"labels": {"disk": "fast"}}},
        "two": {"metadata": {"labels": {"disk": "fast"}}},
        "slow": {},
    }
    for name, fields in nodes.items():
        cluster.create(kinds.NODE, name, **fields)
    for name in ("a", "b", "c"):
        pod(cluster, name, nodeSelector={"disk": "fast"})
    stuck = pod(cluster, "d", nodeSelector={"disk": "golden"})
    cluster.settle()
    taken = [found["spec"].get("nodeName") for found in cluster.all(kinds.POD).values()]
    assert sorted(taken[:3]) == ["one", "one", "two"]
    assert stuck["status"]["phase"] == "Pending"


def test_pod_waits_for_claims_and_readiness_gates() -> None:
    cluster = NaiveCluster("pods")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    waiting = pod(cluster, volumes=volumes)
    gated = pod(cluster, "gated", schedulingGates=[{"name": "example.com/later"}])
    not_yet = pod(cluster, "not-yet", readinessGates=[{"conditionType": "example.com/checked"}])
    cluster.settle()
    assert "nodeName" not in waiting["spec"]
    assert "nodeName" not in gated["spec"]
    assert not ready(not_yet)
    cluster.create(kinds.PERSISTENT_VOLUME_CLAIM, "data", spec={"resources": {"requests": {"storage": "1Gi"}}})
    checked = [*not_yet["status"]["conditions"], {"type": "example.com/checked", "status": "True"}]
    cluster.patch(kinds.POD, "not-yet", {"status": {"conditions": checked}})
    cluster.settle()
    assert ready(waiting)
    assert ready(not_yet)


def test_initial_delay_of_probe_delays_readiness() -> None:
    cluster = NaiveCluster("pods")
    pod(cluster, containers=[{**CONTAINERS[0], "readinessProbe": {"initialDelaySeconds": 20}}])
    cluster.settle()
    assert cluster.now > 20


@pytest.mark.parametrize(("fails", "phase", "code"), [(False, "Succeeded", 0), (True, "Failed", 1)])
def test_pod_without_restart_ends(fails: bool, phase: str, code: int) -> None:
    cluster = NaiveCluster("pods", fails=lambda _: fails)
    found = pod(cluster, restartPolicy="Never")
    cluster.settle()
    assert found["status"]["phase"] == phase
    assert found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code
    assert not ready(found)


def test_crash_looping_pod_never_becomes_ready() -> None:
    cluster = NaiveCluster("pods", fails=lambda _: True)
    found = pod(cluster)
    cluster.settle()
    assert not ready(found)
    assert found["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}


def test_deleted_pod_ends_within_grace_period() -> None:
    cluster = NaiveCluster("pods")
    found = pod(cluster)
    cluster.settle()
    before = cluster.now
    cluster.delete(kinds.POD, "a", grace=2)
    cluster.settle()
    assert not cluster.all(kinds.POD)
    assert not ready(found)
    assert cluster.now - before <= 2.2


def test_finalizer_keeps_ended_pod() -> None:
    cluster = NaiveCluster("pods")
    found = pod(cluster)
    found["metadata"]["finalizers"] = ["example.com/held"]
    cluster.settle()
    cluster.delete(kinds.POD, "a")
    cluster.settle()
    assert cluster.get(kinds.POD, "a")["status"]["phase"] == "Succeeded"
    assert found["metadata"]["deletionGracePeriodSeconds"] == 0
    cluster.patch(kinds.POD, "a", {"metadata": {"finalizers": []}})
    assert not cluster.all(kinds.POD)
