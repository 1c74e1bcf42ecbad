"""Runs two provisioners: claims get volumes although storage fails, one hangs, and the leader is stopped on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import deltaloop as dl
from examples.provisioner.controller import Options, Provisioner
from examples.run import Scene, until

CLAIMS = 40


class TroubledStorage:
    """Makes volumes, but not always at once: every fifth fails at first, and the one named ``hangs`` hangs at first."""

    def __init__(self) -> None:
        """Begin without volumes."""
        self.tries: Counter[str] = Counter()
        self.made: set[str] = set()
        self.at_once: Counter[str] = Counter()
        self.twice_at_once = False
        self.timeouts = 0
        self.failures = 0
        self.hangs = ""

    async def make(self, name: str, size: str) -> str:
        """Make a volume."""
        del size
        self.tries[name] += 1
        fails = self.tries[name] == 1 and len(self.tries) % 5 == 0 and name != self.hangs
        self.at_once[name] += 1
        self.twice_at_once = self.twice_at_once or self.at_once[name] > 1
        try:
            await asyncio.sleep(0.01)
            if name == self.hangs and self.tries[name] == 1:
                await asyncio.sleep(3600)
            if fails:
                self.failures += 1
                raise OSError("the storage has no time")
            self.made.add(name)
        except asyncio.CancelledError:
            self.timeouts += 1
            raise
        finally:
            self.at_once[name] -= 1
        return f"handle-of-{name}"


def claim(name: str, storage_class: str) -> dict[str, Any]:
    """Return a claim."""
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


async def show(scene: Scene) -> None:
    """Show that each claim gets one volume, whatever happens."""
    count = scene.objects or CLAIMS
    client, kind = scene.client, dl.kinds.PERSISTENT_VOLUME_CLAIM
    mine = scene.namespace  # a class of its own, so that nobody else on the cluster cares
    storage = TroubledStorage()
    # Short times, for a show: a leader that ends well frees its lock at once anyway.
    lease = dl.LeaderElectionConfig(lease_duration=3.0, renew_deadline=2.0, retry_period=0.5)
    options = Options(storage_class=mine, timeout=1.0, base_delay=0.05, max_delay=1.0, lease=lease)
    replicas = [Provisioner(client, storage, options, identity=name) for name in ("one", "two")]
    async with dl.InformerFactory(client) as factory:
        volumes = factory.informer(dl.kinds.PERSISTENT_VOLUME, label_selector=f"claim-namespace={scene.namespace}")
        await factory.wait_for_sync(60)

        def served() -> set[str]:
            return {volume["spec"]["claimRef"]["name"] for volume in volumes.lister().list()}

        await client.create(kind, claim("not-mine", "another-class"))
        hanging = await client.create(kind, claim("hangs", mine))
        storage.hangs = f"pvc-{hanging.uid}"
        tasks = [asyncio.create_task(replica.run()) for replica in replicas]
        try:
            scene.expect(await until(lambda: any(each.leads for each in replicas), timeout=30), "one replica leads")
            for number in range(count // 2):
                await client.create(kind, claim(f"claim-{number}", mine))
            half = {f"claim-{number}" for number in range(count // 2)}
            done = await until(lambda: half <= served(), timeout=60)
            leading = [each.leads for each in replicas]
            scene.expect(done and leading.count(True) == 1, f"{count // 2} claims have volumes, one replica works")

            first = leading.index(True)
            tasks[first].cancel()
            for number in range(count // 2, count):
                await client.create(kind, claim(f"claim-{number}", mine))
            everything = {f"claim-{number}" for number in range(count)} | {"hangs"}
            done = await until(lambda: everything <= served(), timeout=60)
            scene.expect(done and replicas[1 - first].leads, "the other one leads, and makes the volumes of the rest")
            scene.expect(served() == everything, "a claim of another class was left alone")
            scene.expect(storage.timeouts > 0, "a claim that hung was stopped after its time, and served later")
            scene.expect(storage.failures > 0, f"{storage.failures} claims that failed at first were tried again")
            scene.expect(not storage.twice_at_once, "no claim was worked on twice at once")
            names = [volume.name for volume in volumes.lister().list()]
            scene.expect(len(names) == len(everything), f"{len(everything)} claims have one volume each")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for each in await client.list_all(kind):
                await client.delete(kind, each.name)
            for volume in volumes.lister().list():
                await client.delete(dl.kinds.PERSISTENT_VOLUME, volume.name)
