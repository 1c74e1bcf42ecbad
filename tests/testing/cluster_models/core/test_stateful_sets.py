"""StatefulSets."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from tests.testing.cluster_models.core.naive_cluster import LABELS, NaiveCluster, ready, template

CLAIM = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}


def stateful_set(cluster: NaiveCluster, replicas: int = 3, **spec: Any) -> dict[str, Any]:
    fields = {
        "replicas": replicas,
        "serviceName": "a",
        "selector": {"matchLabels": LABELS},
        "template": template(),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "volumeClaimTemplates": [CLAIM],
        **spec,
    }
    return cluster.create(kinds.STATEFUL_SET, "a", spec=fields)


def images(cluster: NaiveCluster) -> dict[str, str]:
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in cluster.all(kinds.POD).items()}


def at_most_one_is_not_ready(cluster: NaiveCluster) -> None:
    assert sum(not ready(pod) for pod in cluster.all(kinds.POD).values()) <= 1


@pytest.mark.parametrize("seed", range(5))
def test_stateful_pods_are_created_in_order_with_volumes(seed: int) -> None:
    cluster = NaiveCluster("statefulsets", seed=seed)
    found = stateful_set(cluster)
    cluster.checks.append(lambda: at_most_one_is_not_ready(cluster))
    cluster.settle()
    assert [*cluster.all(kinds.POD)] == ["a-0", "a-1", "a-2"]
    claims = cluster.all(kinds.PERSISTENT_VOLUME_CLAIM)
    assert {name: claim["status"]["phase"] for name, claim in claims.items()} == {
        f"data-a-{number}": "Bound" for number in range(3)
    }
    pod = cluster.get(kinds.POD, "a-1")
    assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-a-1"}}]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("a-1", "a")
    status = found["status"]
    assert (
        status["currentRevision"] == status["updateRevision"] == pod["metadata"]["labels"]["controller-revision-hash"]
    )
    counts = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
    assert {name: status[name] for name in counts} == dict.fromkeys(counts, 3)


@pytest.mark.parametrize("seed", range(5))
def test_scale_down_deletes_last_pod_first_and_keeps_claim(seed: int) -> None:
    cluster = NaiveCluster("statefulsets", seed=seed)
    stateful_set(cluster)
    cluster.settle()
    before = cluster.get(kinds.PERSISTENT_VOLUME_CLAIM, "data-a-2")
    cluster.patch(kinds.STATEFUL_SET, "a", {"spec": {"replicas": 0}})
    gone: list[str] = []
    cluster.checks.append(lambda: gone.append(" ".join(cluster.all(kinds.POD))))
    cluster.settle()
    assert [*dict.fromkeys(gone)] == ["a-0 a-1 a-2", "a-0 a-1", "a-0", ""]
    cluster.patch(kinds.STATEFUL_SET, "a", {"spec": {"replicas": 3}})
    cluster.settle()
    assert cluster.get(kinds.PERSISTENT_VOLUME_CLAIM, "data-a-2") is before


@pytest.mark.parametrize("seed", range(5))
def test_update_replaces_pods_in_reverse_order(seed: int) -> None:
    cluster = NaiveCluster("statefulsets", seed=seed)
    found = stateful_set(cluster)
    cluster.settle()
    old = found["status"]["currentRevision"]
    cluster.checks.append(lambda: at_most_one_is_not_ready(cluster))
    cluster.patch(kinds.STATEFUL_SET, "a", {"spec": {"template": template("2")}})
    cluster.settle()
    assert images(cluster) == {"a-0": "2", "a-1": "2", "a-2": "2"}
    updates = [line.rpartition(" ")[2] for line in cluster.log if "updates" in line]
    assert updates == ["a-2", "a-1", "a-0"]
    assert found["status"]["currentRevision"] == found["status"]["updateRevision"] != old
    assert len(cluster.all(kinds.CONTROLLER_REVISION)) == 2


def test_pods_below_partition_keep_old_version() -> None:
    cluster = NaiveCluster("statefulsets")
    found = stateful_set(cluster, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    cluster.settle()
    cluster.patch(kinds.STATEFUL_SET, "a", {"spec": {"template": template("2")}})
    cluster.settle()
    cluster.delete(kinds.POD, "a-0")
    cluster.settle()
    assert images(cluster) == {"a-0": "1", "a-1": "1", "a-2": "2"}
    assert (found["status"]["currentReplicas"], found["status"]["updatedReplicas"]) == (2, 1)


def test_on_delete_strategy_waits_for_deletion() -> None:
    cluster = NaiveCluster("statefulsets")
    stateful_set(cluster, 2, updateStrategy={"type": "OnDelete"})
    cluster.settle()
    cluster.patch(kinds.STATEFUL_SET, "a", {"spec": {"template": template("2")}})
    cluster.settle()
    cluster.delete(kinds.POD, "a-0")
    cluster.settle()
    assert images(cluster) == {"a-0": "2", "a-1": "1"}


def test_unready_pod_blocks_later_pods() -> None:
    cluster = NaiveCluster("statefulsets", fails=lambda pod: pod.name == "a-1")
    stateful_set(cluster)
    cluster.settle()
    assert [*cluster.all(kinds.POD)] == ["a-0", "a-1"]


def test_parallel_pods_do_not_wait() -> None:
    cluster = NaiveCluster("statefulsets", fails=lambda pod: pod.name == "a-0")
    stateful_set(cluster, podManagementPolicy="Parallel", ordinals={"start": 0})
    cluster.settle()
    assert [*cluster.all(kinds.POD)] == ["a-0", "a-1", "a-2"]


def test_ended_pod_is_recreated() -> None:
    cluster = NaiveCluster("statefulsets")
    stateful_set(cluster, 1)
    cluster.settle()
    first = cluster.get(kinds.POD, "a-0")
    cluster.patch(kinds.POD, "a-0", {"status": {"phase": "Failed"}})
    cluster.settle()
    assert cluster.get(kinds.POD, "a-0") is not first
    assert ready(cluster.get(kinds.POD, "a-0"))


def test_claims_are_deleted_by_retention_policy() -> None:
    cluster = NaiveCluster("statefulsets")
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    found = stateful_set(cluster, 2, persistentVolumeClaimRetentionPolicy=policy, ordinals={"start": 5})
    cluster.settle()
    claim = cluster.get(kinds.PERSISTENT_VOLUME_CLAIM, "data-a-5")
    assert claim["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
    cluster.patch(kinds.STATEFUL_SET, "a", {"spec": {"replicas": 1}})
    cluster.settle()
    assert [*cluster.all(kinds.PERSISTENT_VOLUME_CLAIM)] == ["data-a-5"]
    assert [*cluster.all(kinds.POD)] == ["a-5"]


def test_deleted_stateful_set_creates_no_pods() -> None:
    cluster = NaiveCluster("statefulsets")
    stateful_set(cluster)["metadata"]["finalizers"] = ["foregroundDeletion"]
    cluster.delete(kinds.STATEFUL_SET, "a")
    cluster.settle()
    assert not cluster.all(kinds.POD)


def test_pod_waits_for_terminating_claim() -> None:
    cluster = NaiveCluster("statefulsets")
    stateful_set(cluster, 1)
    cluster.settle()
    held = cluster.get(kinds.PERSISTENT_VOLUME_CLAIM, "data-a-0")
    held["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    cluster.delete(kinds.PERSISTENT_VOLUME_CLAIM, "data-a-0")
    cluster.delete(kinds.POD, "a-0")
    cluster.settle()
    assert not cluster.all(kinds.POD)
    cluster.patch(kinds.PERSISTENT_VOLUME_CLAIM, "data-a-0", {"metadata": {"finalizers": []}})
    cluster.settle()
    assert ready(cluster.get(kinds.POD, "a-0"))


def test_missing_claim_of_waiting_pod_is_recreated() -> None:
    cluster = NaiveCluster("statefulsets")
    stateful_set(cluster, 1)
    taken: list[str] = []

    def takes_the_claim_away() -> None:
        if cluster.all(kinds.POD) and not taken:
            taken.append("data-a-0")
            cluster.delete(kinds.PERSISTENT_VOLUME_CLAIM, taken[0])

    cluster.checks.append(takes_the_claim_away)
    cluster.settle()
    assert ready(cluster.get(kinds.POD, "a-0"))
    assert taken


def test_pods_have_finalizers_of_template() -> None:
    cluster = NaiveCluster("statefulsets")
    held = template()
    held["metadata"] |= {"finalizers": ["example.com/held"], "name": "of-the-template"}
    stateful_set(cluster, 1, template=held)
    cluster.settle()
    assert cluster.get(kinds.POD, "a-0")["metadata"]["finalizers"] == ["example.com/held"]
