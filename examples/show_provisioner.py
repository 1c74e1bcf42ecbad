"""Run two provisioners with an unreliable storage system, and stop the leader."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import deltaloop as dl
from examples.provisioner.controller import Options, Provisioner
from examples.run import Scene, until

CLAIMS = 40


class UnreliableStorage:
    """Storage system in which every fifth volume fails once, and the volume ``hangs`` hangs once."""

    def __init__(self) -> None:
        """Create a storage system without volumes."""
        self.attempts: Counter[str] = Counter()
        self.volumes: set[str] = set()
        self.running: Counter[str] = Counter()
        self.concurrent = False
        self.timeouts = 0
        self.failures = 0
        self.hangs = ""

    async def create(self, name: str, size: str) -> str:
        """Create a volume, fail, or hang."""
        del size
        self.attempts[name] += 1
        fails = self.attempts[name] == 1 and len(self.attempts) % 5 == 0 and name != self.hangs
        self.running[name] += 1
        self.concurrent = self.concurrent or self.running[name] > 1
        try:
            await asyncio.sleep(0.01)
            if name == self.hangs and self.attempts[name] == 1:
                await asyncio.sleep(3600)
            if fails:
                self.failures += 1
                raise OSError("the storage system is busy")
            self.volumes.add(name)
        except asyncio.CancelledError:
            self.timeouts += 1
            raise
        finally:
            self.running[name] -= 1
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
    """Check that each claim gets one volume despite failures."""
    count = scene.objects or CLAIMS
    client, kind = scene.client, dl.kinds.PERSISTENT_VOLUME_CLAIM
    mine = scene.namespace  # a storage class that no other provisioner uses
    storage = UnreliableStorage()
    # Short durations, because this is an example. A stopped leader releases its lock immediately.
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
            scene.expect(done and leading.count(True) == 1, f"{count // 2} claims have volumes, and one replica leads")

            first = leading.index(True)
            tasks[first].cancel()
            for number in range(count // 2, count):
                await client.create(kind, claim(f"claim-{number}", mine))
            all_claims = {f"claim-{number}" for number in range(count)} | {"hangs"}
            done = await until(lambda: all_claims <= served(), timeout=60)
            scene.expect(
                done and replicas[1 - first].leads, "the other replica takes over and creates the remaining volumes"
            )
            scene.expect(served() == all_claims, "a claim of another class has no volume")
            scene.expect(storage.timeouts > 0, "a claim that hung was canceled and retried")
            scene.expect(storage.failures > 0, f"{storage.failures} failed claims were retried")
            scene.expect(not storage.concurrent, "no claim was processed twice at the same time")
            names = [volume.name for volume in volumes.lister().list()]
            scene.expect(len(names) == len(all_claims), f"{len(all_claims)} claims have one volume each")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for each in await client.list_all(kind):
                await client.delete(kind, each.name)
            for volume in volumes.lister().list():
                await client.delete(dl.kinds.PERSISTENT_VOLUME, volume.name)
