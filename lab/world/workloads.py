"""Steps: what the controller manager, the scheduler and KWOK make of workloads."""

from __future__ import annotations

from typing import Any

import deltaloop as dl
from lab.world.settled import has_condition, is_ready, is_settled
from lab.world.world import MANIFESTS, World

ROLLOUT = "--timeout=90s"
# Some of them are left to chance.
_NO_EVENTS = "--show-events=false"


async def nodes(world: World) -> None:
    """Nodes come, KWOK says that they are ready, and the taint that keeps Pods away goes."""
    await world.apply("nodes")
    await world.until_all(
        "nodes", lambda node: is_ready(node) and not node["spec"].get("taints"), count=3, cluster=True
    )
    await world.until_all("leases", lambda _: True, cluster=True)
    # The server's own four, some time after its start, and this step's.
    await world.until_all("namespaces", lambda each: each["status"].get("phase") == "Active", count=5, cluster=True)
    await world.record_objects("nodes", "nodes", cluster=True)
    await world.record_table("table", "nodes", "-o", "wide")
    await world.record_table("namespaces", "namespaces")


async def namespace_contents(world: World) -> None:
    """A new namespace gets an account and the certificate of the authority."""
    # Each by a controller of its own.
    await world.until_all("serviceaccounts", lambda _: True, count=1)
    await world.until_all("configmaps", lambda _: True, count=1)
    await world.record_objects("made for it", "serviceaccounts", "configmaps")
    await world.record_table("table", "serviceaccounts,configmaps")


async def deployment(world: World) -> None:
    """A Deployment has its Pods, which are bound and run."""
    await world.apply("deployment")
    world.record_text("rollout", await world.kubectl("rollout", "status", "deployment/web", ROLLOUT), last=True)
    await world.until_all("pods", is_ready, count=3)
    await world.record_objects("running", "deployments", "replicasets", "pods")
    await world.record_table("table", "deployments,replicasets,pods")


async def services(world: World) -> None:
    """Services have EndpointSlices and Endpoints with the Pods that are ready."""
    await world.apply("deployment")
    await world.apply("service")
    await world.kubectl("rollout", "status", "deployment/web", ROLLOUT)
    await _until_endpoints(world, 3)
    await world.record_objects("three", "services", "endpointslices", "endpoints")
    await world.record_table("table", "services,endpointslices")
    await world.kubectl("scale", "deployment/web", "--replicas=1")
    await _until_endpoints(world, 1)
    await world.record_objects("one", "endpointslices")
    world.record_text("describe", await world.kubectl("describe", "service", "web-headless", _NO_EVENTS))
    await world.kubectl("delete", "service", "--all")
    await world.until("the slices go", lambda: _is_empty(world, "endpointslices"))


async def _until_endpoints(world: World, count: int) -> None:
    def ready(slice_: dl.Resource) -> bool:
        found: Any = slice_.get("endpoints") or ()
        return len(found) == count and all(each["conditions"].get("ready") for each in found)

    await world.until_all("endpointslices", ready, count=3)
    await world.until("the Endpoints follow", lambda: _endpoints_have(world, count))


async def _endpoints_have(world: World, count: int) -> bool:
    found = await world.objects("endpoints")
    subsets: list[Any] = [each.get("subsets") or () for each in found]
    return len(found) == 3 and all(sum(len(one.get("addresses") or ()) for one in those) == count for those in subsets)


async def _is_empty(world: World, kind: str) -> bool:
    return not await world.objects(kind)


async def rolling_update(world: World) -> None:
    """A new image rolls out, is undone, and paused; each revision has its ReplicaSet."""
    await world.apply("deployment")
    await world.kubectl("rollout", "status", "deployment/web", ROLLOUT)
    for image in ("example.com/web:2", "example.com/web:3"):
        await world.kubectl("set", "image", "deployment/web", f"web={image}")
        await world.kubectl("rollout", "status", "deployment/web", ROLLOUT)
        await world.until_all("pods", is_ready, count=3)
    await world.record_objects("third", "deployments", "replicasets")
    world.record_text("history", await world.kubectl("rollout", "history", "deployment/web"))
    world.record_text("undo", await world.kubectl("rollout", "undo", "deployment/web", "--to-revision=1"))
    await world.kubectl("rollout", "status", "deployment/web", ROLLOUT)
    await world.until_all("pods", is_ready, count=3)
    # A paused Deployment is not told how its last rollout ended.
    await world.until_all("deployments.apps", lambda each: is_settled(each.to_dict()), count=1)
    await world.kubectl("rollout", "pause", "deployment/web")
    await world.record_objects("undone", "deployments", "replicasets", "pods")
    world.record_text("history after it", await world.kubectl("rollout", "history", "deployment/web"))
    world.record_text("diff", await world.kubectl("diff", "-f", str(MANIFESTS / "service.yaml"), fails=True))


async def statefulset(world: World) -> None:
    """A StatefulSet has Pods in their order, each with a claim that is bound, and its claim outlives its Pod."""
    await world.apply("volumes")
    # A claim that finds no volume asks for one to be made.
    await world.until_all(
        "persistentvolumes", lambda each: each["status"].get("phase") == "Available", count=3, cluster=True
    )
    await world.apply("statefulset")
    world.record_text("rollout", await world.kubectl("rollout", "status", "statefulset/db", ROLLOUT), last=True)
    await world.until_all("pods", is_ready, count=3)
    await world.until_all("persistentvolumeclaims", lambda each: each["status"].get("phase") == "Bound", count=3)
    kinds = ("statefulsets", "pods", "persistentvolumeclaims", "controllerrevisions")
    await world.record_objects("running", *kinds)
    await world.record_objects("running", "persistentvolumes", cluster=True)
    await world.record_table("table", "statefulsets,pods,persistentvolumeclaims")
    await world.kubectl("delete", "pod", "db-1")
    await world.until_all("pods", is_ready, count=3)
    await world.kubectl("scale", "statefulset/db", "--replicas=1")
    await world.until_all("pods", is_ready, count=1)
    await world.record_objects("one", "statefulsets", "pods", "persistentvolumeclaims")
    await world.kubectl("delete", "statefulset", "db")
    await world.until("its Pods go", lambda: _is_empty(world, "pods"))
    await world.kubectl("delete", "persistentvolumeclaims", "--all")
    await world.until("the claims go", lambda: _is_empty(world, "persistentvolumeclaims"))
    await world.until_all(
        "persistentvolumes", lambda each: each["status"].get("phase") != "Bound", count=3, cluster=True
    )
    await world.record_table("volumes", "persistentvolumes")
    await world.kubectl("delete", "persistentvolumes", "--all")


async def daemonset(world: World) -> None:
    """A DaemonSet has a Pod on each node, on a new one too, and none on one that is gone."""
    await world.apply("daemonset")
    world.record_text("rollout", await world.kubectl("rollout", "status", "daemonset/agent", ROLLOUT), last=True)
    await _daemon_is_settled(world, 3)
    await world.record_objects("three", "daemonsets", "pods", "controllerrevisions")
    await world.apply("node_3")
    await world.until_all("pods", is_ready, count=4)
    await _daemon_is_settled(world, 4)
    await world.record_table("four", "daemonsets,pods")
    await world.kubectl("delete", "node", "node-3")
    # The controller manager looks for such Pods three times a minute, and believes it after 40 seconds.
    await world.until_all("pods", is_ready, count=3, seconds=150.0)
    await _daemon_is_settled(world, 3)
    await world.kubectl("set", "image", "daemonset/agent", "agent=example.com/agent:2")
    await world.kubectl("rollout", "status", "daemonset/agent", ROLLOUT)
    await _daemon_is_settled(world, 3)
    await world.record_objects("updated", "daemonsets", "controllerrevisions")


async def _daemon_is_settled(world: World, count: int) -> None:
    def settled(each: dl.Resource) -> bool:
        status = each.get("status", {})
        names = ("desiredNumberScheduled", "numberAvailable", "numberReady", "updatedNumberScheduled")
        return status.get("observedGeneration") == each.generation and {status.get(name) for name in names} == {count}

    await world.until_all("daemonsets.apps", settled, count=1)


async def jobs(world: World) -> None:
    """Jobs run to their end; one that is to be swept at once is gone afterwards."""
    await world.apply("jobs")
    await world.until_all("jobs.batch", has_condition("Complete"), count=2)
    # The Pod of the swept one goes after it.
    await world.until_all("pods", lambda pod: pod["status"].get("phase") == "Succeeded", count=5)
    world.record_text("wait", await world.kubectl("wait", "--for=condition=Complete", "job/sums", "job/parts"))
    await world.record_objects("complete", "jobs", "pods")
    await world.record_table("table", "jobs,pods")
    await world.kubectl("delete", "jobs", "--all")
    await world.until("their Pods go", lambda: _is_empty(world, "pods"))


async def cronjobs(world: World) -> None:
    """A CronJob starts a Job at the next minute, and one that is suspended does not."""
    await world.apply("cronjobs")

    def has_run(each: dl.Resource) -> bool:
        return each.name == "idle" or ("lastSuccessfulTime" in each.get("status", {}) and not _active(each))

    await world.until_all("cronjobs.batch", has_run, count=2)
    await world.kubectl("patch", "cronjob", "tick", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    await world.record_objects("run", "cronjobs", "jobs", "pods")
    world.record_text("by hand", await world.kubectl("create", "job", "now", "--from=cronjob/idle"))
    await world.kubectl("wait", "--for=condition=Complete", "job/now", "--timeout=60s")


def _active(each: dl.Resource) -> object:
    return each["status"].get("active")
