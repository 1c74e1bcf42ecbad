"""Run the sample controller, and check the Deployments of its Foos."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import deltaloop as dl
from examples.run import Scene, until
from examples.sample_controller.controller import CRD_FILE, FOO, Options, ensure_crd, run

FOOS = 10
TIMEOUT = 60.0
GARBAGE_TIMEOUT = 20.0  # a garbage collector needs much less


def foo(name: str, replicas: int) -> dict[str, Any]:
    """Return a Foo."""
    return {"metadata": {"name": name}, "spec": {"deploymentName": name, "replicas": replicas}}


async def show(scene: Scene) -> None:
    """Check that Deployments are created, updated, repaired and deleted."""
    count = scene.objects or FOOS
    client = scene.client
    crd = dl.read_yaml(CRD_FILE.read_text(), source=CRD_FILE.name)["metadata"]["name"]
    existed = await exists(client, crd)
    await ensure_crd(client)
    options = Options(kubeconfig=scene.kubeconfig, identity="the-example", namespace=scene.namespace)
    task = asyncio.create_task(run(options))
    try:
        async with dl.InformerFactory(client, namespace=scene.namespace) as factory:
            deployments = factory.informer(dl.kinds.DEPLOYMENT)
            foos = factory.informer(FOO)
            await factory.wait_for_sync(60)

            def replicas() -> dict[str, int]:
                return {each.name: each["spec"]["replicas"] for each in deployments.lister().list()}

            async def reaches(expected: dict[str, int]) -> bool:
                return await until(lambda: task.done() or replicas() == expected, timeout=TIMEOUT) and not task.done()

            for number in range(count):
                await client.create(FOO, foo(f"foo-{number}", 0))
            wanted = {f"foo-{number}": 0 for number in range(count)}
            scene.expect(await reaches(wanted), f"{count} foos have deployments")

            def have_status() -> bool:
                found = foos.lister().list()
                return all(each.get("status", {}).get("observedGeneration") == each.generation for each in found)

            scene.expect(await until(have_status, timeout=TIMEOUT), "each foo has a current status")

            await client.patch(FOO, "foo-0", {"spec": {"replicas": 1}})
            scene.expect(await reaches({**wanted, "foo-0": 1}), "a changed foo updates its deployment")
            await client.patch(dl.kinds.DEPLOYMENT, "foo-0", {"spec": {"replicas": 5}})
            await asyncio.sleep(0.2)
            scene.expect(await reaches({**wanted, "foo-0": 1}), "a changed deployment is repaired")
            await client.delete(dl.kinds.DEPLOYMENT, "foo-0")
            await asyncio.sleep(0.2)
            scene.expect(await reaches({**wanted, "foo-0": 1}), "a deleted deployment is recreated")
            owners = {each.name: each.controller_owner for each in deployments.lister().list()}
            ids = {each.name: each.uid for each in foos.lister().list()}
            right = all(owner is not None and owner_is(owner, name, ids[name]) for name, owner in owners.items())
            scene.expect(right, "each deployment has its foo as controlling owner")
            if any(each.get("status", {}).get("observedGeneration") for each in deployments.lister().list()):
                scene.expect(await runs(client, foos), "the pod is ready, and the status of its foo contains it")
            else:
                scene.skip("the pod is ready", "this cluster creates no pods for deployments")
            for number in range(count):
                await client.delete(FOO, f"foo-{number}")
            if await collects_garbage(client):
                scene.expect(await reaches({}), "deployments are deleted with their foos")
            else:
                scene.skip("deployments are deleted with their foos", "this cluster has no garbage collector")
                for name in owners:
                    await client.delete(dl.kinds.DEPLOYMENT, name)
    finally:
        ended_early = task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if not existed:
            await client.delete(dl.kinds.CUSTOM_RESOURCE_DEFINITION, crd)
    if ended_early:
        task.result()


def owner_is(owner: dl.OwnerReference, name: str, uid: str) -> bool:
    """Return whether the reference is a complete controller reference to the Foo."""
    named = (owner.api_version, owner.kind, owner.name, owner.uid) == (FOO.api_version, FOO.kind, name, uid)
    return named and owner.controller is True and owner.block_owner_deletion is True


async def runs(client: dl.Client, foos: dl.cache.SharedIndexInformer[dl.Resource]) -> bool:
    """Wait until the Pod of the first Foo is ready and the status of the Foo contains it."""

    def is_available() -> bool:
        foo = foos.lister().find(f"{client.namespace}/foo-0")
        return foo is not None and foo.get("status", {}).get("availableReplicas") == 1

    if not await until(is_available, timeout=TIMEOUT):
        return False
    selector = dl.ListOptions(label_selector="controller=foo-0")
    pods = await client.list_all(dl.kinds.POD, namespace=client.namespace, options=selector)
    conditions = [each["status"].get("conditions", []) for each in pods if each["spec"].get("nodeName")]
    return len(conditions) == 1 and {"Ready": "True"}.items() <= {c["type"]: c["status"] for c in conditions[0]}.items()


async def collects_garbage(client: dl.Client) -> bool:
    """Return whether the cluster deletes an object with a missing owner. A kube-apiserver alone does not."""
    kind = dl.kinds.CONFIG_MAP
    owner: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "uid": str(uuid.uuid4())}
    orphan = await client.create(kind, {"metadata": {"generateName": "orphan-", "ownerReferences": [owner]}})
    try:
        await client.wait_for(kind, orphan.name, dl.wait.deleted(), timeout=GARBAGE_TIMEOUT)
    except dl.WaitTimeoutError:
        await client.delete(kind, orphan.name)
        return False
    return True


async def exists(client: dl.Client, crd: str) -> bool:
    """Return whether the CRD exists."""
    try:
        await client.get(dl.kinds.CUSTOM_RESOURCE_DEFINITION, crd)
    except dl.NotFoundError:
        return False
    return True
