"""What stands in for a cluster, beside programs under test and on the embedded server."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api.kstatus import KStatus, object_status
from deltaloop.errors import InvalidArgumentError, NotSettledError
from deltaloop.testing import Cluster, CrashMoment, Harness, embedded_harness
from deltaloop.testing.cluster_models.driver import MANAGER
from tests.having import having

DEPLOYMENT, STATEFUL_SET, POD, JOB = dl.kinds.DEPLOYMENT, dl.kinds.STATEFUL_SET, dl.kinds.POD, dl.kinds.JOB
LABELS: dict[str, Any] = {"app": "a"}
CONTAINER = {"name": "c", "image": "1"}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
TASK: dict[str, Any] = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
OWNED: dict[str, Any] = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}


def deployment(replicas: int = 2) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {**OWNED, "replicas": replicas}}


def stateful_set(replicas: int = 2) -> dict[str, Any]:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": claim}]
    spec = {**OWNED, "replicas": replicas, "serviceName": "a", "volumeClaimTemplates": claims}
    return {"metadata": {"name": "a"}, "spec": spec}


async def test_settled_deployment_has_pods(deltaloop_harness: Harness) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    await harness.environment("deployments")
    await client.create(DEPLOYMENT, deployment())
    await harness.settled()
    assert object_status(await client.get(DEPLOYMENT, "a")).status is KStatus.CURRENT
    assert asyncio.get_running_loop().time() > 1.0
    assert len((await client.list(POD)).items) == 2
    assert harness.writes == []
    await client.delete(DEPLOYMENT, "a")
    await harness.settled()
    assert not (await client.list(POD)).items


async def test_scaled_down_stateful_set_keeps_claims(deltaloop_harness: Harness) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    await harness.environment("statefulsets", "endpoints")
    port: list[dict[str, Any]] = [{"name": "web", "port": 80}]
    await client.create(
        dl.kinds.SERVICE, {"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "selector": LABELS, "ports": port}}
    )
    await client.create(STATEFUL_SET, stateful_set())
    await harness.settled()
    (found,) = (await client.list(dl.kinds.ENDPOINT_SLICE, selector="kubernetes.io/service-name=a")).items
    assert len(found["endpoints"] or ()) == 2
    await client.patch(STATEFUL_SET, "a", {"spec": {"replicas": 1}})
    await harness.settled()
    assert [pod.name for pod in (await client.list(POD)).items] == ["a-0"]
    claims = (await client.list(dl.kinds.PERSISTENT_VOLUME_CLAIM)).items
    assert [(claim.name, claim["status"]["phase"]) for claim in claims] == [
        ("data-a-0", "Bound"),
        ("data-a-1", "Bound"),
    ]
    assert object_status(await client.get(STATEFUL_SET, "a")).status is KStatus.CURRENT
    assert {each["manager"] for each in claims[0]["metadata"]["managedFields"]} == {MANAGER}


@pytest.mark.parametrize(("fails", "condition"), [(False, "Complete"), (True, "Failed")])
async def test_job_ends_with_result_of_program(deltaloop_harness: Harness, fails: bool, condition: str) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    await harness.environment("jobs", failing=lambda pod: fails and pod.name.startswith("a-"))
    await client.create(JOB, {"metadata": {"name": "a"}, "spec": {"backoffLimit": 1, "template": TASK}})
    await harness.settled()
    found = await client.get(JOB, "a")
    assert found["status"]["conditions"][-1]["type"] == condition
    await client.delete(JOB, "a", options=dl.DeleteOptions(propagation_policy="Background"))
    await harness.settled()
    assert not (await client.list(POD)).items


@dl.controller(dl.kinds.CONFIG_MAP, name="web", owns=[DEPLOYMENT], writes=[DEPLOYMENT, dl.kinds.CONFIG_MAP])
async def web(request: dl.Request, ctx: dl.Context) -> None:
    """Make a Deployment for a ConfigMap, and write there how many Pods are ready."""
    asking = await ctx.client.find(dl.kinds.CONFIG_MAP, request.name, namespace=request.namespace)
    if asking is None or asking.name != "asks":
        return
    running = await ctx.client.find(DEPLOYMENT, "a", namespace=request.namespace)
    if running is None:
        wanted = {**deployment(), "metadata": {"name": "a", "namespace": request.namespace}}
        dl.set_controller_reference(wanted, asking, dl.kinds.CONFIG_MAP)
        written: dict[str, Any] = wanted
        await ctx.client.create(DEPLOYMENT, written)
        return
    ready = str(running.get("status", {}).get("readyReplicas", 0))
    if asking.get("data", {}).get("ready") != ready:
        patch = {"data": {"ready": ready}}
        await ctx.client.patch(dl.kinds.CONFIG_MAP, "asks", patch, namespace=request.namespace)


async def test_environment_continues_without_program(deltaloop_harness: Harness) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    await harness.environment("deployments")
    await harness.start(web)
    harness.crash_at_write(1, CrashMoment.AFTER)
    with harness.fail_writes(0.5, seed=1):
        await client.create(dl.kinds.CONFIG_MAP, {"metadata": {"name": "asks"}})
        await harness.settled()
    assert (await client.get(dl.kinds.CONFIG_MAP, "asks"))["data"] == {"ready": "2"}
    await harness.crash()
    await client.patch(DEPLOYMENT, "a", {"spec": {"replicas": 3}})
    await harness.settled()
    assert (await client.get(DEPLOYMENT, "a"))["status"]["readyReplicas"] == 3
    assert {write.resource for write in harness.writes} == {"deployments.apps", "configmaps"}


async def _pods_of(seed: int) -> tuple[str, ...]:
    """Return the names of Pods in the order in which they have started."""
    async with embedded_harness(seed=seed) as harness:
        await harness.environment("deployments")
        await harness.client.create(DEPLOYMENT, deployment(4))
        await harness.settled()
        pods = (await harness.client.list(POD)).items
        return tuple(pod.name for pod in sorted(pods, key=lambda pod: int(pod.resource_version)))


async def test_not_settled_error_contains_pending_steps(deltaloop_harness: Harness) -> None:
    await deltaloop_harness.environment("deployments")
    await deltaloop_harness.client.create(DEPLOYMENT, deployment())
    with pytest.raises(NotSettledError) as caught:
        await deltaloop_harness.settled(0.6)
    assert any(text.startswith("the environment: Pod ") for text in caught.value.left)


async def test_not_settled_error_contains_rejected_writes(deltaloop_harness: Harness) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    await harness.environment("replicasets")
    quota: dict[str, Any] = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    await client.create(dl.kinds.RESOURCE_QUOTA, quota)
    status = {"status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}}
    await client.patch(dl.kinds.RESOURCE_QUOTA, "few", status, subresource="status")
    body: dict[str, Any] = {"metadata": {"name": "a"}, "spec": OWNED | {"replicas": 1}}
    await client.create(dl.kinds.REPLICA_SET, body)
    with pytest.raises(NotSettledError) as caught:
        await harness.settled(10)
    assert re.search(r"Pod 1 of 1, tried \d times: ForbiddenError: .*exceeded quota", "\n".join(caught.value.left))


async def test_models_can_be_added_and_unknown_names_are_rejected(deltaloop_harness: Harness) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    await harness.environment("volumes")
    with pytest.raises(InvalidArgumentError, check=having(argument="models")):
        await harness.environment("deployment")  # type: ignore[arg-type]
    await client.create(DEPLOYMENT, deployment())
    await harness.settled()
    assert not (await client.list(POD)).items
    await harness.environment("deployments")
    await harness.settled()
    assert len((await client.list(POD)).items) == 2


async def test_error_of_failing_function_is_raised(deltaloop_harness: Harness) -> None:
    def failing(pod: dl.Resource) -> bool:
        raise LookupError(pod.name)

    await deltaloop_harness.environment("pods", failing=failing)
    await deltaloop_harness.client.create(POD, {"metadata": {"name": "a"}, "spec": TEMPLATE["spec"]})
    with pytest.raises(LookupError, match="a"):
        await deltaloop_harness.settled()


async def test_environment_on_real_cluster_is_rejected(deltaloop_client: dl.Client, deltaloop_cluster: Cluster) -> None:
    real = Cluster(deltaloop_cluster.kubeconfig, embedded=False, shared=True)
    with pytest.raises(InvalidArgumentError, check=having(argument="environment()")):
        await Harness(real, deltaloop_client).environment("pods")


async def test_environment_is_limited_to_namespace_of_test(
    deltaloop_client: dl.Client, deltaloop_cluster: Cluster
) -> None:
    shared = Cluster(deltaloop_cluster.kubeconfig, embedded=True, shared=True)
    await deltaloop_client.create(dl.kinds.NAMESPACE, {"metadata": {"name": "other"}})
    await deltaloop_client.create(DEPLOYMENT, deployment(), namespace="other")
    await deltaloop_client.create(DEPLOYMENT, deployment())
    async with Harness(shared, deltaloop_client) as harness:
        await harness.environment("deployments")
        await harness.settled()
    pods = await deltaloop_client.list_all(POD)
    assert {pod.namespace for pod in pods} == {deltaloop_client.namespace}


async def test_seed_determines_names_and_times() -> None:
    first, again, another = [await _pods_of(seed) for seed in (1, 1, 2)]
    assert first == again != another
