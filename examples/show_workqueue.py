"""Run the work queue controller while Pods are created, changed and deleted. One Pod always fails."""

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
    """Return a Pod that no scheduler handles."""
    container = {"name": "c", "image": "example.invalid/nothing"}
    return {"metadata": {"name": name}, "spec": {"schedulerName": "none", "containers": [container]}}


async def show(scene: Scene) -> None:
    """Check the lines that the controller reports."""
    count = scene.objects or PODS
    reported: Counter[str] = Counter()

    def report(line: str) -> None:
        reported[line] += 1
        if line.endswith(" Pod bad"):
            raise ValueError("this Pod always fails")

    client, namespace = scene.client, scene.namespace
    controller = Controller(client, namespace, report)
    await client.create(dl.kinds.POD, pod("pod-0"))  # exists before the controller starts
    task = asyncio.create_task(controller.run(WORKERS))
    try:
        for number in range(1, count):
            await client.create(dl.kinds.POD, pod(f"pod-{number}"))
        await client.create(dl.kinds.POD, pod("bad"))
        wanted = {f"Sync/Add/Update for Pod pod-{number}" for number in range(count)}
        done = await until(lambda: task.done() or wanted <= reported.keys(), timeout=60)
        scene.expect(done and not task.done(), f"all {count} pods were synced by {WORKERS} workers")

        line = "Sync/Add/Update for Pod bad"
        await until(
            lambda: reported[line] > MOST_RETRIES and not controller.queue.num_requeues(f"{namespace}/bad"), timeout=30
        )
        scene.expect(reported[line] == MOST_RETRIES + 1, f"the bad pod was attempted {MOST_RETRIES + 1} times")

        before = reported["Sync/Add/Update for Pod pod-0"]
        patch = {"metadata": {"labels": {"changed": "yes"}}}
        await client.patch(dl.kinds.POD, "pod-0", patch)
        changed = await until(lambda: reported["Sync/Add/Update for Pod pod-0"] > before, timeout=30)
        scene.expect(changed, "a changed pod was synced again")

        for number in range(count):
            await client.delete(dl.kinds.POD, f"pod-{number}", options=dl.DeleteOptions(grace_period_seconds=0))
        gone = {f"Pod {namespace}/pod-{number} does not exist anymore" for number in range(count)}
        scene.expect(await until(lambda: gone <= reported.keys(), timeout=60), f"{count} pods were reported as deleted")
        scene.show(f"  {sum(reported.values())} reconciles for {2 * count + 2} changes")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
