"""``make -C lab shards``: membership changes of a sharded program with real processes.

The server is the embedded server or a real kube-apiserver (``--server real``).

Members join, leave, are killed, are paused, or lose the connection to the server for a while. Afterwards, no write of a
former owner was accepted, no key was reconciled by two members at a time, and each object has its last value.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

from deltaloop.api.kinds import CONFIG_MAP, LEASE, NAMESPACE
from deltaloop.api.resource import Resource
from deltaloop.cache import InformerFactory
from deltaloop.leaderelection.core.record import record_from_lease
from deltaloop.sharding.core.shard_map import InvalidShardMapError, ShardMap
from deltaloop.sharding.objects import SHARDS_LABEL
from deltaloop.testing import Relay
from deltaloop.testing.injected_faults.core.relay import Direction, Stall
from lab.shards.checking import Accepted, entries, gaps, reconciled_twice
from lab.shards.measure import config_maps
from lab.shards.member import OPTIONS
from lab.shards.servers import SERVERS, Server, started

NAMESPACES = [f"team-{place:03}" for place in range(100)]
SMALLEST, LARGEST = 2, 5
_LABELS = {SHARDS_LABEL: OPTIONS.name}
"""Labels of the map and of the changed objects, which the checks watch."""
_AFTER = 8.0
"""Time in seconds after a fault in which gaps can follow from it."""
_FILLED_WITHIN = 900.0


@dataclass
class Process:
    """One member with its own way to the server."""

    name: str
    relay: Relay
    process: asyncio.subprocess.Process
    began_at: float
    busy: bool = False


@dataclass
class Fleet:
    server: Server
    folder: Path
    random: random.Random
    kinds: str = "all"
    writers: int = 1
    members: dict[str, Process] = field(default_factory=dict[str, Process])
    number: int = 0
    accepted: Accepted = field(default_factory=Accepted)
    lease_writes: Counter[str] = field(default_factory=Counter[str])
    lives: float = 0.0
    stopped_at: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    faults: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    events: list[tuple[float, str, str]] = field(default_factory=list[tuple[float, str, str]])
    values: Counter[str] = field(default_factory=Counter[str])
    changed_at: dict[str, float] = field(default_factory=dict[str, float])
    shown_after: list[float] = field(default_factory=list[float])
    trail: TextIO = sys.stdout
    stack: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    # Accepted writes of the server

    def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        del is_in_initial_list
        self.on_update(obj, obj)

    def on_update(self, old: Resource, new: Resource) -> None:
        if new.name.startswith(OPTIONS.name) and new.resource_type is not None and new.resource_type.kind == "Lease":
            self.lease_writes[lease_write(old, new)] += 1
            return
        data: dict[str, str] = new.get("data") or {}
        old_data: dict[str, str] = old.get("data") or {}
        if new.name == OPTIONS.map_name:
            with contextlib.suppress(InvalidShardMapError):
                self.accepted.maps.append((new.version, ShardMap.decode(data["ranges"])))
                self.trail.write(f"{time.monotonic():.3f} map {data['ranges']}\n")
            return
        self.measure(new.namespace, data)
        if data.get("by") and (old is new or any(data.get(each) != old_data.get(each) for each in ("seen", "by"))):
            self.accepted.writes.append((new.version, new.namespace, data["by"]))

    def measure(self, namespace: str, data: Mapping[str, str]) -> None:
        """Measure the time in which a member shows a value, unless a newer value replaces it."""
        if data.get("value") != data.get("seen"):
            self.changed_at[namespace] = time.monotonic()
        elif namespace in self.changed_at:
            self.shown_after.append(time.monotonic() - self.changed_at.pop(namespace))

    def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        """Deletions are no writes of the program."""

    # Changes

    def note(self, what: str, name: str) -> None:
        self.events.append((time.monotonic(), what, name))
        self.trail.write(f"{time.monotonic():.3f} {what} {name}\n")

    async def join(self) -> None:
        self.number += 1
        name = f"m{self.number}"
        relay = await self.stack.enter_async_context(Relay(self.server.url))
        kubeconfig = self.folder / f"{name}.kubeconfig"
        kubeconfig.write_text(json.dumps(relay.kubeconfig(self.server.kubeconfig)))
        with (self.folder / f"{name}.log").open("w") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "lab.shards.member", name, str(kubeconfig), str(self.folder / f"{name}.jsonl"),
                stdout=log, stderr=log,
            )  # fmt: skip
        self.members[name] = Process(name, relay, process, time.monotonic())
        self.note("join", name)

    async def end(self, each: Process, number: int) -> None:
        del self.members[each.name]
        self.note("kill" if number == signal.SIGKILL else "leave", each.name)
        if number == signal.SIGKILL:
            self.stopped_at[each.name].append(time.monotonic())
            self.faults.append((time.monotonic(), time.monotonic()))
        if each.process.returncode is not None:
            raise RuntimeError(f"{each.name} ended by itself, see {self.folder / each.name}.log")
        each.process.send_signal(number)
        async with asyncio.timeout(60):
            await each.process.wait()
        self.lives += time.monotonic() - each.began_at

    async def pause(self, each: Process) -> None:
        each.busy = True
        self.note("pause", each.name)
        self.stopped_at[each.name].append(time.monotonic())
        self.faults.append((time.monotonic(), time.monotonic() + 9.0))
        each.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(self.random.uniform(0.5, 9.0))
        each.process.send_signal(signal.SIGCONT)
        each.busy = False

    async def cut(self, each: Process) -> None:
        """Hold all bytes of a member. They continue later, unless the member has closed the connection."""
        each.busy = True
        self.note("cut", each.name)
        self.faults.append((time.monotonic(), time.monotonic() + 9.0))
        for direction in Direction:
            each.relay.inject(Stall(direction=direction))
        each.relay.plan(*(Stall(direction=direction) for direction in Direction), connections=None)
        await asyncio.sleep(self.random.uniform(0.5, 9.0))
        each.relay.clear()
        each.busy = False

    async def change(self) -> asyncio.Task[None]:
        free = [each for each in self.members.values() if not each.busy]
        choices = ["join"] * 3 if len(self.members) < LARGEST else []
        if len(self.members) > SMALLEST and len(free) > 1:
            choices += {"none": ["leave"] * 3, "kill": ["kill"] * 3, "all": ["leave", "kill", "leave"]}[self.kinds]
        if len(free) > 1 and self.kinds == "all":
            choices += ["pause", "cut"]
        what, each = self.random.choice(choices or ["wait"]), self.random.choice(free) if free else None
        if what == "join":
            return asyncio.create_task(self.join())
        if what == "wait" or each is None:
            return asyncio.create_task(asyncio.sleep(0.5))
        if what in ("leave", "kill"):
            number = signal.SIGTERM if what == "leave" else signal.SIGKILL
            return asyncio.create_task(self.end(each, number))
        return asyncio.create_task(self.pause(each) if what == "pause" else self.cut(each))

    # Load

    async def load(self, writer: int) -> None:
        pause = 0.01 if self.writers == 1 else 0.0
        mine = NAMESPACES[writer :: self.writers]
        while True:
            namespace = self.random.choice(mine)
            self.values[namespace] += 1
            patch = {"data": {"value": str(self.values[namespace])}}
            await self.server.client.patch(CONFIG_MAP, "a", patch, namespace=namespace)
            await asyncio.sleep(pause)

    async def lost(self) -> list[str]:
        """Return the objects that do not show their last value."""
        objects = await self.server.client.list(CONFIG_MAP, selector=f"{SHARDS_LABEL}={OPTIONS.name}")
        found: dict[str, Mapping[str, str]] = {
            obj.namespace: obj.get("data") or {} for obj in objects if obj.name == "a"
        }
        return [each for each in NAMESPACES if found[each].get("seen") != found[each].get("value")]

    def sizes(self) -> dict[str, dict[str, float]]:
        """Return the number of cached objects, the memory and the CPU time of each member."""
        found: dict[str, dict[str, float]] = {}
        for name in self.members:
            with contextlib.suppress(OSError, ValueError):  # before and during a write
                found[name] = json.loads((self.folder / f"{name}.size").read_text())
        return found

    async def filled(self, objects: int) -> None:
        """Wait until the members have shared all objects, and print the sizes."""
        began, sizes = time.monotonic(), self.sizes()
        while time.monotonic() < began + _FILLED_WITHIN:
            sizes = self.sizes()
            held = [each["held"] for each in sizes.values()]
            if len(held) == len(self.members) and sum(held) >= objects and max(held) < 1.3 * objects / len(held):
                break
            await asyncio.sleep(0.5)
        cached, cpu, memory = ([round(each[what]) for each in sizes.values()] for what in ("held", "cpu", "rss"))
        print(f"{sum(cached)} of {objects} objects in the caches of {len(cached)} members after "
              f"{time.monotonic() - began:.0f} s: {cached} objects, {[each // 10**6 for each in memory]} MB, "
              f"{cpu} s of CPU since the start", flush=True)  # fmt: skip


async def run(arguments: argparse.Namespace) -> int:
    changes, objects, kinds = arguments.changes, arguments.objects, arguments.faults
    with tempfile.TemporaryDirectory(prefix="shards-") as name:
        folder = Path(name)
        async with started(arguments.server) as server:
            for namespace in NAMESPACES:
                await server.client.create(NAMESPACE, {"metadata": {"name": namespace}})
                fields: dict[str, Any] = {"metadata": {"name": "a", "labels": _LABELS}, "data": {"value": "0"}}
                await server.client.create(CONFIG_MAP, fields, namespace=namespace)
            began = time.monotonic()
            await server.load(config_maps(objects, NAMESPACES))
            print(f"{objects} objects created in {time.monotonic() - began:.0f} s", flush=True)
            total = objects + len(NAMESPACES)
            fleet = Fleet(
                server, folder, random.Random(arguments.seed), kinds=kinds, writers=arguments.writers,
                trail=(folder / "trail").open("w"),
            )  # fmt: skip
            async with fleet.stack, InformerFactory(server.client) as factory:
                selector = f"{SHARDS_LABEL}={OPTIONS.name}"
                for kind in (CONFIG_MAP, LEASE):
                    factory.informer(kind, label_selector=selector).add_event_handler(fleet)
                await factory.wait_for_sync()
                for _ in range(arguments.members):
                    await fleet.join()
                await fleet.filled(total)
                await asyncio.sleep(3 + objects / 50_000)
                fleet.shown_after.clear()
                loads = [asyncio.create_task(fleet.load(writer)) for writer in range(fleet.writers)]
                tasks: list[asyncio.Task[None]] = []
                began = time.monotonic()
                await asyncio.sleep(arguments.steady)
                if arguments.steady:
                    print(f"{fleet.values.total() / arguments.steady:.0f} changes per second in {arguments.steady:g} s,"
                          f" shown after {figures(fleet.shown_after)}", flush=True)  # fmt: skip
                while len(fleet.events) < changes + arguments.members:
                    tasks.append(await fleet.change())
                    # A kill must not overlap with another change, so that the time without an owner is its own.
                    pause = 8.0 if kinds == "kill" else fleet.random.uniform(0.1, 2.0)
                    await asyncio.sleep((pause if kinds != "none" else pause + 1.0) + objects / 10_000)
                    for load in loads:
                        if load.done():
                            load.result()
                await asyncio.gather(*tasks)
                for load in loads:
                    load.cancel()
                await asyncio.gather(*loads, return_exceptions=True)
                took = time.monotonic() - began
                lost = await fleet.lost()
                for _ in range(200):
                    if not lost:
                        break
                    await asyncio.sleep(0.1)
                    lost = await fleet.lost()
                if objects:
                    await fleet.filled(total)
                await asyncio.sleep(0.5)
                for each in [*fleet.members.values()]:
                    await fleet.end(each, signal.SIGTERM)
        return report(fleet, took, lost)


def report(fleet: Fleet, took: float, lost: list[str]) -> int:
    kills = [(at, name) for at, what, name in fleet.events if what == "kill"]
    killed: list[dict[str, Any]] = [{"at": at, "what": "owns", "by": name, "ranges": []} for at, name in kills]
    journal: list[dict[str, Any]] = sorted([*entries(fleet.folder.glob("*.jsonl")), *killed], key=itemgetter("at"))
    former = fleet.accepted.by_former_owners()
    twice = reconciled_twice(journal, fleet.stopped_at)
    kinds = Counter(what for _, what, _ in fleet.events)
    print(f"{sum(kinds.values())} changes in {took:.0f} s: {dict(kinds)}")
    print(f"{len(fleet.accepted.writes)} accepted writes, {len(fleet.accepted.maps)} maps")
    print(f"accepted writes of a former owner: {len(former)} {former[:3]}")
    print(f"keys reconciled by two members at a time: {len(twice)} {twice[:3]}")
    print(f"keys lost: {len(lost)} {lost[:3]}")
    planned, crashed = split(fleet, gaps(journal, NAMESPACES))
    print(f"planned hand-over, time without an owner: {figures(planned)}")
    print(f"after a crash, pause or cut: {figures(crashed)}")
    print(f"joins, until the member owns ranges: {figures(joins(fleet, journal))}")
    writes = fleet.lease_writes
    rate = writes.total() / max(fleet.lives, 1)
    print(f"Lease writes per member and second: {rate:.2f}, in {fleet.lives:.0f} s of all members: {dict(writes)}")
    errors = [line for log in fleet.folder.glob("*.log") for line in log.read_text().splitlines() if "CRITICAL" in line]
    print(f"critical log lines: {len(errors)} {errors[:2]}")
    return int(bool(former or twice or lost or errors))


def lease_write(old: Resource, new: Resource) -> str:
    if old is new:
        return "create"
    if not record_from_lease(new.view())[0].holder_identity:
        return "release"
    return "renew"


def split(fleet: Fleet, found: list[tuple[float, float, str]]) -> tuple[list[float], list[float]]:
    """Return the gaps without a fault of any member, and the others."""
    planned: list[float] = []
    faulty: list[float] = []
    for since, seconds, _ in found:
        near = any(began - 1 < since + seconds and since < ended + _AFTER for began, ended in fleet.faults)
        (faulty if near else planned).append(seconds)
    return planned, faulty


def joins(fleet: Fleet, journal: list[dict[str, Any]]) -> list[float]:
    first: dict[str, float] = {}
    for entry in journal:
        if entry["what"] == "owns" and entry["ranges"]:
            first.setdefault(str(entry["by"]), float(str(entry["at"])))
    return [first[name] - at for at, what, name in fleet.events if what == "join" and name in first]


def figures(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{len(ordered)}, median {ordered[len(ordered) // 2]:.3f} s, p99 {p99:.3f} s, most {ordered[-1]:.3f} s"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", choices=("none", "kill", "all"), default="all")
    parser.add_argument("--objects", type=int, default=0, help="number of further objects of 1 KB")
    parser.add_argument("--server", choices=SERVERS, default="embedded")
    parser.add_argument("--members", type=int, default=3, help="number of members at the start")
    parser.add_argument("--writers", type=int, default=1, help="number of programs that change objects without a pause")
    parser.add_argument("--steady", type=float, default=0.0, help="seconds with changes of objects before the faults")
    sys.exit(asyncio.run(run(parser.parse_args())))
