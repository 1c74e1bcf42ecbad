"""Run the replicator with 5 000 copies of 100 sources in 50 namespaces, and change sources and copies."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import deltaloop as dl
from examples.replicator.controller import FROM, TO, replicator
from examples.run import Scene, until

COPIES = 5000
TIMEOUT = 300.0
EVERY = 0.25


async def show(scene: Scene) -> None:
    """Check that copies are created, updated, repaired and deleted."""
    count = scene.objects or COPIES
    namespaces = max(2, int(math.sqrt(count / 2)))
    sources = max(1, count // namespaces)
    client, home = scene.client, scene.namespace
    places = [f"{home}-{number}" for number in range(namespaces)]
    names = [f"source-{number}" for number in range(sources)]
    controller = replicator([f"{home}/{name}" for name in names])
    manager = dl.Manager(client, [controller])

    async with dl.InformerFactory(client) as factory:
        # This cache is independent of the controller.
        copies = factory.informer(dl.kinds.CONFIG_MAP, label_selector=FROM)
        await factory.wait_for_sync(60)

        def count_copies(**expected: str) -> int:
            found = (obj for obj in copies.lister().list() if obj.namespace in places)
            return sum(all(obj["data"].get(name) == value for name, value in expected.items()) for obj in found)

        task = asyncio.create_task(manager.run())
        try:
            annotations = {TO: f"replicate={home}"}
            for name in names:
                await client.create(
                    dl.kinds.CONFIG_MAP,
                    {"metadata": {"name": name, "annotations": annotations}, "data": {"version": "1"}},
                )
            for place in places:
                body: dict[str, Any] = {"metadata": {"name": place, "labels": {"replicate": home}}}
                await client.create(dl.kinds.NAMESPACE, body)
            total = namespaces * sources
            done = await until(lambda: task.done() or count_copies(version="1") == total, timeout=TIMEOUT, every=EVERY)
            scene.expect(done and not task.done(), f"{total} copies of {sources} sources in {namespaces} namespaces")

            await client.patch(dl.kinds.CONFIG_MAP, names[0], {"data": {"version": "2"}})
            done = await until(lambda: count_copies(version="2") == namespaces, timeout=TIMEOUT, every=EVERY)
            scene.expect(done, f"{namespaces} copies are updated with their source")

            await client.patch(dl.kinds.CONFIG_MAP, names[0], {"data": {"version": "wrong"}}, namespace=places[0])
            await client.delete(dl.kinds.CONFIG_MAP, names[0], namespace=places[1])
            await asyncio.sleep(0.2)
            done = await until(
                lambda: count_copies(version="2") == namespaces and count_copies() == total,
                timeout=TIMEOUT,
                every=EVERY,
            )
            scene.expect(done, "a changed copy and a deleted copy are repaired")

            for name in names:
                await client.delete(dl.kinds.CONFIG_MAP, name)
            done = await until(lambda: count_copies() == 0, timeout=TIMEOUT, every=EVERY)
            scene.expect(done, "all copies are deleted with their sources")
        finally:
            manager.stop()
            await asyncio.gather(task, return_exceptions=True)
            for place in places:
                await client.delete(dl.kinds.NAMESPACE, place)
        if not task.cancelled():
            task.result()
