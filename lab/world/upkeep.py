"""Steps: budgets and evictions, drain, garbage collection, accounts, and the end of a namespace."""

from __future__ import annotations

import json

import deltaloop as dl
from lab.world.settled import is_ready
from lab.world.world import MANIFESTS, Output, StepError, World

EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}


async def eviction(world: World) -> None:
    """The controller counts for a budget; an eviction that it allows is let through, another is not."""
    await world.apply("deployment")
    await world.apply("budget")
    await world.until_all("pods", is_ready, count=3)
    await _budget_says(world, 3, 0)
    await world.record_objects("closed", "poddisruptionbudgets")
    world.record_text("refused", await _evict(world, fails=True))
    await world.kubectl("patch", "poddisruptionbudget", "web", "--type=merge", "-p", '{"spec":{"minAvailable":2}}')
    await _budget_says(world, 3, 1)
    before = {each.name for each in await world.objects("pods")}
    world.record_text("let through", await _evict(world))

    async def is_replaced() -> bool:
        pods = await world.objects("pods")
        return len(pods) == 3 and all(map(is_ready, pods)) and {each.name for each in pods} != before

    await world.until("the evicted Pod is replaced", is_replaced)
    await _budget_says(world, 3, 1)
    await world.record_objects("open", "poddisruptionbudgets")
    await world.record_table("table", "poddisruptionbudgets,pods")


async def _evict(world: World, *, fails: bool = False) -> Output:
    pods = sorted(await world.objects("pods"), key=lambda each: each.name)
    name = pods[0].name
    world.names[name] = "<first pod>"
    body = {**EVICTION, "metadata": {"name": name, "namespace": world.namespace}}
    path = f"/api/v1/namespaces/{world.namespace}/pods/{name}/eviction"
    return await world.kubectl("create", "--raw", path, "-f", "-", text=json.dumps(body), fails=fails)


async def _budget_says(world: World, healthy: int, allowed: int) -> None:
    def says(each: dl.Resource) -> bool:
        status = each.get("status", {})
        return (
            status.get("observedGeneration") == each.generation
            and (status.get("currentHealthy"), status.get("disruptionsAllowed")) == (healthy, allowed)
            # A Pod on its way out is counted there.
            and status.get("expectedPods") == healthy
            and not status.get("disruptedPods")
        )

    await world.until_all("poddisruptionbudgets.policy", says, count=1)


async def drain(world: World) -> None:
    """A node is drained through evictions, its Pods come up elsewhere, DaemonSets stay, and it is opened again."""
    await world.apply("deployment")
    await world.apply("daemonset")
    await world.until_all("pods", is_ready, count=6)
    await world.kubectl("patch", "deployment", "web", "--type=json", "-p", json.dumps(_ANYWHERE))
    await world.kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    await world.until_all("pods", is_ready, count=6)
    done = await world.kubectl("drain", "node-1", "--ignore-daemonsets", "--timeout=60s")
    lines = [line for line in done.stdout.splitlines() if "evict" not in line]
    world.record("drain", {"code": done.code, "stdout": lines})

    async def is_drained() -> bool:
        pods = await world.objects("pods")
        left = [each for each in pods if each["spec"].get("nodeName") == "node-1"]
        return (
            len(pods) == 6
            and all(map(is_ready, pods))
            and [each["metadata"]["labels"]["app"] for each in left] == ["agent"]
        )

    await world.until("only the agent is left on the node", is_drained)
    await world.record_table("nodes", "nodes")
    # The controller manager adds it; that it goes again is waited for below.
    await world.until("the node has its taint", lambda: _is_tainted(world, "node-1"))
    world.record_text("uncordon", await world.kubectl("uncordon", "node-1"))
    await world.until_all("nodes", lambda node: not node["spec"].get("taints"), count=3, cluster=True)
    await world.record_objects("after", "nodes", cluster=True)


async def _is_tainted(world: World, name: str) -> bool:
    (node,) = [each for each in await world.objects("nodes", cluster=True) if each.name == name]
    return bool(node["spec"].get("taints"))


_ANYWHERE = [{"op": "remove", "path": "/spec/template/spec/topologySpreadConstraints"}]


async def garbage(world: World) -> None:
    """What an owner leaves behind goes with it: in the background, before it, or not at all."""
    for way in ("background", "foreground", "orphan"):
        await world.kubectl("apply", "-f", str(MANIFESTS / "deployment.yaml"))
        await world.until_all("pods", is_ready, count=3)
        done = await world.kubectl("delete", "deployment", "web", f"--cascade={way}")
        world.record_text(f"delete {way}", done)
        if way == "orphan":
            break
        await world.until(f"all go ({way})", lambda: _nothing_is_left(world))
    await world.until_all("replicasets.apps", lambda each: not each["metadata"].get("ownerReferences"), count=1)
    await world.record_objects("orphans", "replicasets", "pods")
    await world.kubectl("delete", "replicaset", "--all")
    await world.until("all go", lambda: _nothing_is_left(world))
    # An owner that never was.
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "never-was",
        "uid": "00000000-0000-4000-8000-000000000000",
    }
    orphan = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "orphan", "ownerReferences": [owner]}}
    await world.kubectl("create", "-f", "-", text=json.dumps(orphan))
    await world.until("an orphan goes", lambda: _is_gone(world, "configmaps", "orphan"))


async def _nothing_is_left(world: World) -> bool:
    return not [each for kind in ("deployments.apps", "replicasets.apps", "pods") for each in await world.objects(kind)]


async def _is_gone(world: World, kind: str, name: str) -> bool:
    return name not in {each.name for each in await world.objects(kind)}


async def quota(world: World) -> None:
    """The controller manager counts what a quota is about; a real server holds new objects to it."""
    limits = {"pods": "1", "count/configmaps": "5"}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": limits}}
    await world.kubectl("create", "-f", "-", text=json.dumps(body))
    await _quota_says(world, "0")
    await world.kubectl("run", "first", "--image=example.com/web:1")
    await world.until_all("pods", is_ready, count=1)
    await _quota_says(world, "1")
    world.record_text("described", await world.kubectl("describe", "resourcequota", "few"), table=True)
    world.record_text("a second Pod", await world.kubectl("run", "second", "--image=example.com/web:1", fails=None))
    await world.kubectl("delete", "pods", "--all")
    await world.until("the Pods are gone", lambda: _are_gone(world, "pods"))
    await _quota_says(world, "0")


async def _quota_says(world: World, pods: str) -> None:
    def says(each: dl.Resource) -> bool:
        # The namespace's own ConfigMap may be counted later than its Pods.
        used = each.get("status", {}).get("used", {})
        return bool((used.get("pods"), used.get("count/configmaps")) == (pods, "1"))

    await world.until_all("resourcequotas", says, count=1)


async def _are_gone(world: World, kind: str) -> bool:
    return not await world.objects(kind)


async def namespace_end(world: World) -> None:
    """A namespace goes with all that is in it, and says for what it waits."""
    for manifest in ("deployment", "service", "jobs"):
        await world.apply(manifest)
    await world.until("the Pods run", lambda: _some_run(world))
    held = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    await world.kubectl("create", "-f", "-", text=json.dumps(held))
    await world.kubectl("delete", "namespace", world.namespace, "--wait=false")
    await world.until("the namespace waits for a finalizer", lambda: _namespace_waits(world))
    done = await world.kubectl("get", "namespace", world.namespace, "-o", "json")
    world.record("waits", json.loads(done.stdout))
    refused = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "late"}}
    world.record_text("too late", await world.kubectl("create", "-f", "-", text=json.dumps(refused), fails=True))
    patch = '{"metadata":{"finalizers":null}}'
    await world.kubectl("patch", "configmap", "held", "--type=merge", "-p", patch)

    async def is_gone() -> bool:
        try:
            await world.client.get(dl.kinds.NAMESPACE, world.namespace)
        except dl.NotFoundError:
            return True
        return False

    await world.until("the namespace is gone", is_gone)


async def _some_run(world: World) -> bool:
    return sum(map(is_ready, await world.objects("pods"))) >= 3


async def _namespace_waits(world: World) -> bool:
    found = await world.client.get(dl.kinds.NAMESPACE, world.namespace)
    if found["status"]["phase"] != "Terminating":
        raise StepError(f"the namespace is {found['status']['phase']}")
    conditions = {each["type"]: each for each in found["status"].get("conditions", [])}
    waiting = conditions.get("NamespaceFinalizersRemaining")
    remaining = conditions.get("NamespaceContentRemaining")
    if waiting is None or remaining is None:
        return False
    # And nothing else any more.
    return waiting["status"] == "True" and remaining.get("message", "").endswith(
        ": configmaps. has 1 resource instances"
    )
