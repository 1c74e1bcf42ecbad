"""Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from tests.testing.cluster_models.core.naive_cluster import NaiveCluster, template


def job(cluster: NaiveCluster, *, restart: str = "Never", **spec: Any) -> dict[str, Any]:
    fields = {"parallelism": 1, "template": template(restartPolicy=restart), **spec}
    return cluster.create(kinds.JOB, "a", spec=fields)


def true_conditions(fields: dict[str, Any]) -> list[str]:
    return [each["type"] for each in fields["status"].get("conditions", []) if each["status"] == "True"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
def test_job_is_complete_after_enough_successes(mode: str, seed: int) -> None:
    cluster = NaiveCluster("jobs", seed=seed)
    found = job(cluster, completions=5, parallelism=2, completionMode=mode)
    running: list[int] = []
    cluster.checks.append(
        lambda: running.append(
            sum(pod["status"]["phase"] in ("Pending", "Running") for pod in cluster.all(kinds.POD).values())
        )
    )
    cluster.settle()
    assert true_conditions(found) == ["SuccessCriteriaMet", "Complete"]
    assert found["status"]["succeeded"] == 5
    assert max(running) == 2
    assert len(cluster.all(kinds.POD)) == 5
    assert "uncountedTerminatedPods" not in found["status"]
    assert not [pod for pod in cluster.all(kinds.POD).values() if pod["metadata"]["finalizers"]]
    if mode == "Indexed":
        assert found["status"]["completedIndexes"] == "0-4"


def test_job_without_completions_creates_no_pods_after_first_success() -> None:
    cluster = NaiveCluster("jobs")
    found = job(cluster, parallelism=3)
    cluster.settle()
    assert true_conditions(found) == ["SuccessCriteriaMet", "Complete"]
    assert found["status"]["succeeded"] == 3  # who works on a queue is let finish


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("restart", "pods"), [("Never", 3), ("OnFailure", 1)])
def test_job_fails_after_backoff_limit(restart: str, pods: int, seed: int) -> None:
    cluster = NaiveCluster("jobs", seed=seed, fails=lambda _: True)
    found = job(cluster, restart=restart, backoffLimit=2)
    cluster.settle()
    assert true_conditions(found) == ["FailureTarget", "Failed"]
    assert found["status"]["failed"] == pods
    assert cluster.now > (30 if restart == "Never" else 10)
    assert "active" not in found["status"]


def test_deleted_finished_pod_is_counted_once() -> None:
    cluster = NaiveCluster("jobs")
    found = job(cluster, completions=2)

    def deletes_what_has_succeeded() -> None:
        for name, pod in cluster.all(kinds.POD).items():
            if pod["status"]["phase"] == "Succeeded" and "deletionTimestamp" not in pod["metadata"]:
                cluster.delete(kinds.POD, name, grace=0)

    cluster.checks.append(deletes_what_has_succeeded)
    cluster.settle()
    assert found["status"]["succeeded"] == 2
    assert len([line for line in cluster.log if "creates Pod" in line]) == 2


def test_deleted_running_pod_is_replaced() -> None:
    cluster = NaiveCluster("jobs")
    found = job(cluster)
    stopped: list[str] = []

    def stops_the_first() -> None:
        for name, pod in cluster.all(kinds.POD).items():
            if pod["status"]["phase"] == "Running" and not stopped:
                stopped.append(name)
                cluster.delete(kinds.POD, name)

    cluster.checks.append(stops_the_first)
    cluster.settle()
    assert (found["status"]["failed"], found["status"]["succeeded"]) == (1, 1)
    assert stopped[0] not in cluster.all(kinds.POD)


def test_suspended_job_stops_and_resumes() -> None:
    cluster = NaiveCluster("jobs")
    found = job(cluster, suspend=True)
    cluster.settle()
    assert not cluster.all(kinds.POD)
    assert true_conditions(found) == ["Suspended"]
    cluster.patch(kinds.JOB, "a", {"spec": {"suspend": False}})
    cluster.settle()
    assert true_conditions(found) == ["SuccessCriteriaMet", "Complete"]


def test_reduced_parallelism_deletes_pods() -> None:
    cluster = NaiveCluster("jobs")
    job(cluster, completions=4, parallelism=3)
    asked: list[int] = []

    def asks_for_less() -> None:
        if len(cluster.all(kinds.POD)) == 3 and not asked:
            asked.append(1)
            cluster.patch(kinds.JOB, "a", {"spec": {"parallelism": 1}})

    cluster.checks.append(asks_for_less)
    cluster.settle()
    deleted = [line for line in cluster.log if "Job a deletes" in line]
    assert len(deleted) == 2


def test_pods_of_gone_job_lose_finalizer() -> None:
    cluster = NaiveCluster("jobs")
    job(cluster)

    def deletes_the_job() -> None:
        if cluster.all(kinds.POD):
            cluster.objects.pop(("Job", "a"), None)

    cluster.checks.append(deletes_the_job)
    cluster.settle()
    (pod,) = cluster.all(kinds.POD).values()
    assert not pod["metadata"]["finalizers"]
