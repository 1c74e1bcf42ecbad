"""Runs the work queue controller while Pods come, change and go, one of which always fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import deltaloop as dl
from examples.run import Scene, until
from examples.workqueue.controller import MOST_RETRIES, Controller

PODS = 50
WORKERS = 5


def pod(name: str) -> dict[str, Any]:
    """Return a Pod that no scheduler of a real cluster takes up."""
    container = {"name": "c", "image": "example.invalid/nothing"}
    return {"metadata": {"name": name}, "spec": {"schedulerName": "nobody", "containers": [container]}}


async def show(scene: Scene) -> None:
    """Show what the controller is told of."""
    count = scene.objects or PODS
    told: Counter[str] = Counter()

    def tell(line: str) -> None:
        told[line] += 1
        if line.endswith(" Pod bad"):
            raise ValueError("the business of this one always fails")

    client, namespace = scene.client, scene.namespace
    controller = Controller(client, namespace, tell)
    await client.create(dl.kinds.POD, pod("pod-0"))  # is there before the controller is
    task = asyncio.create_task(controller.run(WORKERS))
    try:
        for number in range(1, count):
            await client.create(dl.kinds.POD, pod(f"pod-{number}"))
        await client.create(dl.kinds.POD, pod("bad"))
        wanted = {f"Sync/Add/Update for Pod pod-{number}" for number in range(count)}
        done = await until(lambda: task.done() or wanted <= told.keys(), timeout=60)
        scene.expect(done and not task.done(), f"all {count} pods were synced by {WORKERS} workers")

        tries = "Sync/Add/Update for Pod bad"
        await until(
            lambda: told[tries] > MOST_RETRIES and not controller.queue.num_requeues(f"{namespace}/bad"), timeout=30
        )
        scene.expect(told[tries] == MOST_RETRIES + 1, f"the bad pod was tried {MOST_RETRIES + 1} times and given up")

        before = told["Sync/Add/Update for Pod pod-0"]
        patch = {"metadata": {"labels": {"changed": "yes"}}}
        await client.patch(dl.kinds.POD, "pod-0", patch)
        changed = await until(lambda: told["Sync/Add/Update for Pod pod-0"] > before, timeout=30)
        scene.expect(changed, "a changed pod was synced again")

        for number in range(count):
            await client.delete(dl.kinds.POD, f"pod-{number}", options=dl.DeleteOptions(grace_period_seconds=0))
        gone = {f"Pod {namespace}/pod-{number} does not exist anymore" for number in range(count)}
        scene.expect(await until(lambda: gone <= told.keys(), timeout=60), f"{count} pods were told of as gone")
        scene.show(f"  {sum(told.values())} pieces of work for {2 * count + 2} changes")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
