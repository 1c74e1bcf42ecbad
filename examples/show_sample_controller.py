"""Runs the sample controller as a replica of its own: a Foo gets its Deployment, which is kept as the Foo wants it."""

from __future__ import annotations

import asyncio
from typing import Any

import deltaloop as dl
from examples.run import Scene, until
from examples.sample_controller.controller import CRD_FILE, FOO, Options, ensure_crd, run

FOOS = 10
PATIENCE = 60.0


def foo(name: str, replicas: int) -> dict[str, Any]:
    """Return a Foo."""
    return {"metadata": {"name": name}, "spec": {"deploymentName": name, "replicas": replicas}}


async def show(scene: Scene) -> None:
    """Show that Deployments come, follow and are repaired."""
    count = scene.objects or FOOS
    client = scene.client
    crd = dl.read_yaml(CRD_FILE.read_text(), source=CRD_FILE.name)["metadata"]["name"]
    was_there = await exists(client, crd)
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

            async def reaches(wanted: dict[str, int]) -> bool:
                return await until(lambda: task.done() or replicas() == wanted, timeout=PATIENCE) and not task.done()

            for number in range(count):
                await client.create(FOO, foo(f"foo-{number}", 0))
            wanted = {f"foo-{number}": 0 for number in range(count)}
            scene.expect(await reaches(wanted), f"{count} foos have their deployments")

            def have_status() -> bool:
                found = foos.lister().list()
                return all(each.get("status", {}).get("observedGeneration") == each.generation for each in found)

            scene.expect(await until(have_status, timeout=PATIENCE), "each foo says that it was observed")

            await client.patch(FOO, "foo-0", {"spec": {"replicas": 1}})
            scene.expect(await reaches({**wanted, "foo-0": 1}), "a changed foo changes its deployment")
            await client.patch(dl.kinds.DEPLOYMENT, "foo-0", {"spec": {"replicas": 5}})
            await asyncio.sleep(0.2)
            scene.expect(await reaches({**wanted, "foo-0": 1}), "a deployment that somebody changed is repaired")
            await client.delete(dl.kinds.DEPLOYMENT, "foo-0")
            await asyncio.sleep(0.2)
            scene.expect(await reaches({**wanted, "foo-0": 1}), "a deployment that somebody deleted is made again")
            owners = [each.controller_owner for each in deployments.lister().list()]
            scene.expect(all(owner is not None and owner.kind == "Foo" for owner in owners), "foos own them")
            for number in range(count):
                await client.delete(FOO, f"foo-{number}")
            scene.expect(await reaches({}), "deployments go with their foos")
    finally:
        ended_by_itself = task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if not was_there:
            await client.delete(dl.kinds.CUSTOM_RESOURCE_DEFINITION, crd)
    if ended_by_itself:
        task.result()


async def exists(client: dl.Client, crd: str) -> bool:
    """Tell whether the CRD is there already, and thus somebody else's."""
    try:
        await client.get(dl.kinds.CUSTOM_RESOURCE_DEFINITION, crd)
    except dl.NotFoundError:
        return False
    return True
