"""Deployments."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.kstatus import KStatus, object_status
from deltaloop.api.resource import Resource
from tests.nightly import examples
from tests.testing.cluster_models.core.naive_cluster import LABELS, NaiveCluster, ready, template

ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}


def deployment(cluster: NaiveCluster, replicas: int = 4, **spec: Any) -> dict[str, Any]:
    fields = {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "template": template(),
        "strategy": ROLLING,
        "progressDeadlineSeconds": 600,
        **spec,
    }
    return cluster.create(kinds.DEPLOYMENT, "a", spec=fields)


def images(cluster: NaiveCluster) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in cluster.all(kinds.POD).values())


def sizes(cluster: NaiveCluster) -> list[int]:
    return [each["spec"]["replicas"] for each in cluster.all(kinds.REPLICA_SET).values()]


@pytest.mark.parametrize("seed", range(5))
def test_deployment_becomes_available_and_reports_status(seed: int) -> None:
    cluster = NaiveCluster("deployments", seed=seed)
    found = deployment(cluster)
    cluster.settle()
    assert images(cluster) == ["1"] * 4
    assert object_status(Resource.from_dict(found)).status is KStatus.CURRENT
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    assert {name: found["status"].get(name) for name in counts} == dict.fromkeys(counts, 4)
    assert "unavailableReplicas" not in found["status"]
    said = {each["type"]: (each["status"], each["reason"]) for each in found["status"]["conditions"]}
    assert said == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert found["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}


@pytest.mark.parametrize("seed", range(examples(10)))
def test_rollout_respects_surge_and_unavailable_bounds(seed: int) -> None:
    cluster = NaiveCluster("deployments", seed=seed)
    deployment(cluster)
    cluster.settle()

    def bounds() -> None:
        alive = [pod for pod in cluster.all(kinds.POD).values() if "deletionTimestamp" not in pod["metadata"]]
        assert sum(sizes(cluster)) <= 5  # a moment more may be alive: new ones are made before old ones are deleted
        assert sum(map(ready, alive)) >= 3

    cluster.checks.append(bounds)
    cluster.patch(kinds.DEPLOYMENT, "a", {"spec": {"template": template("2")}})
    cluster.settle()
    assert images(cluster) == ["2"] * 4
    assert sorted(sizes(cluster)) == [0, 4]


def test_restored_template_reuses_its_replica_set() -> None:
    cluster = NaiveCluster("deployments")
    found = deployment(cluster, 1)
    for image in ("1", "2", "1"):
        cluster.patch(kinds.DEPLOYMENT, "a", {"spec": {"template": template(image)}})
        cluster.settle()
    assert len(sizes(cluster)) == 2
    assert images(cluster) == ["1"]
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_rollout_of_broken_version_stops() -> None:
    cluster = NaiveCluster("deployments", fails=lambda pod: "'2'" in str(pod.spec))
    found = deployment(cluster)
    cluster.settle()
    cluster.patch(kinds.DEPLOYMENT, "a", {"spec": {"template": template("2")}})
    cluster.settle()
    assert images(cluster) == ["1", "1", "1", "2", "2"]
    assert found["status"]["readyReplicas"] == 3
    assert found["status"]["unavailableReplicas"] == 2
    assert object_status(Resource.from_dict(found)).status is KStatus.IN_PROGRESS


def test_recreate_strategy_never_runs_two_versions() -> None:
    cluster = NaiveCluster("deployments")
    deployment(cluster, 2, strategy={"type": "Recreate"})
    cluster.settle()
    cluster.checks.append(lambda: _one_version(cluster))
    cluster.patch(kinds.DEPLOYMENT, "a", {"spec": {"template": template("2")}})
    cluster.settle()
    assert images(cluster) == ["2", "2"]


def _one_version(cluster: NaiveCluster) -> None:
    assert len({*images(cluster)}) <= 1


def test_paused_deployment_is_scaled_but_not_rolled_out() -> None:
    cluster = NaiveCluster("deployments")
    deployment(cluster, 1)
    cluster.settle()
    cluster.patch(kinds.DEPLOYMENT, "a", {"spec": {"paused": True, "replicas": 3, "template": template("2")}})
    cluster.settle()
    assert images(cluster) == ["1", "1", "1"]
    cluster.patch(kinds.DEPLOYMENT, "a", {"spec": {"paused": False, "replicas": 0}})
    cluster.settle()
    assert images(cluster) == []


def test_old_replica_sets_are_deleted() -> None:
    cluster = NaiveCluster("deployments")
    deployment(cluster, 1, revisionHistoryLimit=1)
    for image in "23456":
        cluster.patch(kinds.DEPLOYMENT, "a", {"spec": {"template": template(image)}})
        cluster.settle()
    assert sorted(sizes(cluster)) == [0, 1]
