"""``python -m lab.shards.measure``: memory of each member, and throughput of a controller that only computes."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import hashlib
import json
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltaloop as dl
from deltaloop.api.kinds import CONFIG_MAP, NAMESPACE
from deltaloop.api.shard_selector import shard_hash
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.sharding import ShardMember, ShardOptions
from deltaloop.sharding.core.shard_map import ShardMap
from deltaloop.sharding.objects import map_text

if TYPE_CHECKING:
    from lab.shards.servers import Server

ELECTION = LeaderElectionConfig(lease_duration=5.0, renew_deadline=3.5, retry_period=2.0)


def rss() -> int:
    """Return the resident memory of this process in bytes, after the release of free pages to the system."""
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def member(name: str, kubeconfig: Path, journal: Path, *, sharded: bool, burn: float) -> None:
    """Reconcile all objects again and again, and write counts, CPU and memory twice a second."""
    counts = [0]

    @dl.controller("v1/ConfigMap", workers=4, name="measured")
    async def reconcile(request: dl.Request, ctx: dl.Context) -> dl.Result | None:
        counts[0] += 1
        if not burn:
            return None
        until = time.thread_time() + burn
        while time.thread_time() < until:
            hashlib.sha256(b"0" * 10_000).digest()
        await asyncio.sleep(0)
        return dl.Result(requeue_after=0.01)

    async with dl.connect(kubeconfig=kubeconfig, namespace="default") as client:
        shards = None
        if sharded:
            options = ShardOptions(name="measured", namespace="default", election=ELECTION)
            shards = ShardMember(client, options, identity=name)
        manager = dl.Manager(client, [reconcile], shards=shards, options=dl.ManagerOptions(preflight=False))
        running = asyncio.create_task(manager.run(handle_signals=True))
        with journal.open("w", buffering=1) as lines:
            while not running.done():
                held = len(manager.informers[0].indexer) if manager.informers else 0
                seen = {"at": time.monotonic(), "done": counts[0], "cpu": time.process_time(), "held": held}
                lines.write(json.dumps({**seen, "rss": rss()}) + "\n")
                await asyncio.sleep(0.5)
        await running


async def start(name: str, folder: Path, journal: Path, *options: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lab.shards.measure", "--member", name, "--kubeconfig", str(folder / "kubeconfig"),
        "--journal", str(journal), *options,
    )  # fmt: skip


def last(journal: Path) -> dict[str, Any]:
    lines = journal.read_text().splitlines() if journal.exists() else []
    return dict(json.loads(lines[-1])) if lines else {"held": 0}


def config_maps(number: int, namespaces: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Return objects of 1 KB. The embedded server is fast if namespaces follow one another."""
    for place in range(number):
        metadata = {"name": f"c{place:07}", "namespace": namespaces[place * len(namespaces) // number]}
        data = {"text": "x" * 900}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def fleet(folder: Path, number: int, objects: int, *options: str, wait: float) -> list[dict[str, Any]]:
    """Start members, wait until each has a share, and return their counts before and after a time."""
    journals = [folder / f"{number}-{place}-{len(options)}" for place in range(number)]
    processes = [await start(f"m{place}", folder, journal, *options) for place, journal in enumerate(journals)]
    try:
        for _ in range(1200):
            held = [last(journal)["held"] for journal in journals]
            if sum(held) >= objects and min(held) > 0.7 * objects / number:
                break
            await asyncio.sleep(0.5)
        await asyncio.sleep(12 if number > 1 else 2)
        before = [last(journal) for journal in journals]
        await asyncio.sleep(wait)
        after = [last(journal) for journal in journals]
        return [
            {
                **now,
                "done": now["done"] - first["done"],
                "used": now["cpu"] - first["cpu"],
                "seconds": now["at"] - first["at"],
            }
            for now, first in zip(after, before, strict=True)
        ]
    finally:
        for process in processes:
            process.terminate()
        await asyncio.gather(*(process.wait() for process in processes))


async def main(asked: argparse.Namespace) -> None:
    from lab.shards.servers import started  # members must not contain the embedded server

    with tempfile.TemporaryDirectory() as name:
        async with started(asked.server) as server:
            folder = Path(name)
            (folder / "kubeconfig").write_text(json.dumps(server.kubeconfig))
            if asked.ranges:
                await measure_ranges(server, folder, asked.sizes, asked.objects)
            elif asked.throughput:
                await measure_throughput(server, folder, asked.objects)
            else:
                await measure_memory(server, folder, asked.sizes, asked.objects)


async def fill(server: Server, objects: int, namespaces: Sequence[str]) -> None:
    for namespace in namespaces:
        await server.client.create(NAMESPACE, {"metadata": {"name": namespace}})
    began = time.monotonic()
    await server.load(config_maps(objects, namespaces))
    print(f"{objects} objects created in {time.monotonic() - began:.0f} s", flush=True)


async def measure_memory(server: Server, folder: Path, sizes: list[int], objects: int) -> None:
    """Print the memory of members relative to a process with all objects."""
    empty = (await fleet(folder, 1, 0, "--sharded", wait=3))[0]["rss"]
    await server.client.delete(CONFIG_MAP, "measured-shards", namespace="default")
    await fill(server, objects, [f"tenant-{place:03}" for place in range(objects // 10)])
    one = (await fleet(folder, 1, objects, wait=1))[0]
    whole = one["rss"] - empty
    print(f"empty member: {empty / 1e6:.1f} MB, 1 process without shards: {one['rss'] / 1e6:.1f} MB with {one['held']} "
          f"objects, {whole / 1e6:.1f} MB more", flush=True)  # fmt: skip
    for number in sizes:
        found = await fleet(folder, number, objects, "--sharded", wait=1)
        held = max(each["held"] for each in found) * number / objects
        most = max(each["rss"] for each in found)
        print([round(each["rss"] / 1e6, 1) for each in found])
        print(f"{number} members: largest share {held:.3f} of the mean; the largest has {most / one['rss']:.3f} of the "
              f"memory of one process, its caches {(most - empty) / whole:.3f} of the caches of one, which is "
              f"{(most - empty) * number / whole:.2f} of 1/N; 1/N + 0.15 is {1 / number + 0.15:.3f}",
              flush=True)  # fmt: skip


async def measure_ranges(server: Server, folder: Path, sizes: list[int], objects: int) -> None:
    """Print the largest range divided by the mean after each change of the number of members."""
    names = [f"tenant-{place:03}" for place in range(objects)]
    for name in names:
        await server.client.create(NAMESPACE, {"metadata": {"name": name}})
        await server.client.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": name}})
    members: list[asyncio.subprocess.Process] = []
    number = 0
    for size in sizes:
        while len(members) < size:
            members.append(await start(f"m{number}", folder, folder / f"{number}", "--sharded"))
            number += 1
        for process in members[size:]:
            process.terminate()
        await asyncio.gather(*(process.wait() for process in members[size:]))
        del members[size:]
        shard_map = await settled(server.client, size)
        counts = Counter(shard_map.find(shard_hash(name)).start for name in names)
        shares = Counter(shard_map.find(shard_hash(name)).owner for name in names)
        largest, ranges = max(counts.values()), len(shard_map.ranges)
        print(
            f"{size} members: {ranges} ranges, largest {largest * ranges / objects:.2f} of the mean, "
            f"largest share {max(shares.values()) * size / objects:.2f} of the mean",
            flush=True,
        )
    for process in members:
        process.terminate()
    await asyncio.gather(*(process.wait() for process in members))


async def settled(client: dl.Client, size: int) -> ShardMap:
    """Return the map when it has not changed for longer than the period of the reports."""
    text, since = "", time.monotonic()
    for _ in range(240):
        await asyncio.sleep(0.5)
        found = await client.find(CONFIG_MAP, "measured-shards", namespace="default")
        now = map_text(found) if found is not None else ""
        if now != text or not now or len({each.owner for each in ShardMap.decode(now).ranges}) != size:
            text, since = now, time.monotonic()
        elif time.monotonic() - since > 12:
            break
    return ShardMap.decode(text)


async def measure_throughput(server: Server, folder: Path, objects: int) -> None:
    await fill(server, objects, [f"tenant-{place:03}" for place in range(100)])
    rates: dict[str, float] = {}
    for number, options in ((1, ()), (1, ("--sharded",)), (2, ("--sharded",))):
        began = os.times()
        found = await fleet(folder, number, objects, "--burn", "0.003", *options, wait=10)
        ended = os.times()
        done = sum(each["done"] for each in found)
        seconds = max(each["seconds"] for each in found)
        used = sum(each["used"] for each in found)
        of_server = ended.user + ended.system - began.user - began.system
        label = f"{number} {'members' if options else 'process without shards'}"
        rates[label] = done / seconds
        print(
            f"{label}: {done / seconds:.0f} reconciles/s, {used / done * 1e3:.2f} ms of CPU each, "
            f"{used / seconds:.2f} cores, embedded server {of_server:.1f} s of CPU in all"
        )
    print(f"2 members: {rates['2 members'] / rates['1 process without shards']:.2f} times one process")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--throughput", action="store_true")
    parser.add_argument("--ranges", action="store_true")
    parser.add_argument("--member", default="")
    parser.add_argument("--server", default="embedded")
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--sharded", action="store_true")
    parser.add_argument("--burn", type=float, default=0.0)
    asked = parser.parse_args()
    if asked.member:
        asyncio.run(member(asked.member, asked.kubeconfig, asked.journal, sharded=asked.sharded, burn=asked.burn))
    else:
        asyncio.run(main(asked))
