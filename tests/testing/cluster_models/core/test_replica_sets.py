"""ReplicaSets."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from tests.testing.cluster_models.core.naive_cluster import LABELS, NaiveCluster, ready, template


def replica_set(cluster: NaiveCluster, replicas: int = 3, **spec: Any) -> dict[str, Any]:
    fields = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(), **spec}
    return cluster.create(kinds.REPLICA_SET, "a", spec=fields)


@pytest.mark.parametrize("seed", range(5))
def test_replica_set_has_specified_number_of_pods(seed: int) -> None:
    cluster = NaiveCluster("replicasets", seed=seed)
    found = replica_set(cluster)
    cluster.checks.append(lambda: _at_most(cluster, 3))
    cluster.settle()
    pods = cluster.all(kinds.POD)
    assert len(pods) == 3
    assert all(pod["metadata"]["generateName"] == "a-" for pod in pods.values())
    assert all(pod["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"] for pod in pods.values())
    counts = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    assert found["status"] == dict.fromkeys(counts, 3) | {"observedGeneration": 1}


def _at_most(cluster: NaiveCluster, most: int) -> None:
    alive = [pod for pod in cluster.all(kinds.POD).values() if "deletionTimestamp" not in pod["metadata"]]
    assert len(alive) <= most


def test_deleted_pod_is_replaced_and_ended_pod_does_not_count() -> None:
    cluster = NaiveCluster("replicasets")
    replica_set(cluster, 2)
    cluster.settle()
    one, two = cluster.all(kinds.POD)
    cluster.delete(kinds.POD, one)
    cluster.patch(kinds.POD, two, {"status": {"phase": "Failed"}})
    cluster.settle()
    assert sum(map(ready, cluster.all(kinds.POD).values())) == 3  # what has ended says so still
    assert cluster.get(kinds.REPLICA_SET, "a")["status"]["readyReplicas"] == 2


def test_scale_down_deletes_unready_and_cheap_pods_first() -> None:
    cluster = NaiveCluster("replicasets")
    found = replica_set(cluster, 3)
    cluster.settle()
    unready, dear, cheap = cluster.all(kinds.POD)
    cluster.patch(kinds.POD, dear, {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "5"}}})
    conditions = [{"type": "Ready", "status": "False"}]
    cluster.patch(kinds.POD, unready, {"status": {"conditions": conditions}})
    cluster.patch(kinds.REPLICA_SET, "a", {"spec": {"replicas": 1}})
    cluster.settle()
    assert [*cluster.all(kinds.POD)] == [dear]
    assert cheap not in cluster.all(kinds.POD)
    cluster.patch(kinds.REPLICA_SET, "a", {"spec": {"replicas": 0}})
    cluster.settle()
    assert found["status"] == {"replicas": 0, "observedGeneration": 3}


def test_ready_pod_is_available_after_min_ready_seconds() -> None:
    cluster = NaiveCluster("replicasets")
    found = replica_set(cluster, 1, minReadySeconds=30)
    since: list[float] = []

    def notes_when() -> None:
        if "availableReplicas" in found.get("status", {}):
            since.append(cluster.now)

    cluster.checks.append(notes_when)
    cluster.settle()
    assert found["status"]["availableReplicas"] == 1
    assert min(since) > 30


def test_deleted_replica_set_creates_no_pods() -> None:
    cluster = NaiveCluster("replicasets")
    replica_set(cluster, 1)["metadata"]["finalizers"] = ["foregroundDeletion"]
    cluster.delete(kinds.REPLICA_SET, "a")
    cluster.settle()
    assert not cluster.all(kinds.POD)
