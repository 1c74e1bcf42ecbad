"""Run the sharded Database operator with many fault schedules in the simulator, and check the promises of shards.

    python -m lab.shards.schedules [--runs 10000] [--part 1/2] [--record FILE]

First each fault strikes each write, then two or three faults strike random writes. Each schedule is run once. A run
with an existing record continues after its last line. The exit code is 1 if a former owner wrote, two members
reconciled a key at a time, a key was lost, or another oracle of the simulator failed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from examples.database.controller import reconcile
from examples.simulation.ordinary import DATABASE, MAY_DIFFER

import deltaloop as dl
from deltaloop.api.shard_selector import shard_hash
from deltaloop.runtime.core.running import Runs
from deltaloop.runtime.program.errors import ShutdownTimeoutError
from deltaloop.sharding.core.shard_map import ShardMap
from deltaloop.simulation import Simulation, SimulationOptions
from deltaloop.simulation.core.oracles import Oracle
from deltaloop.simulation.core.schedules import (
    ALL_KINDS,
    Schedule,
    combined,
    in_question,
    names_of,
    parse_schedule,
    schedule_text,
    systematic,
)
from deltaloop.simulation.determinism import quiet
from deltaloop.testing import Harness
from deltaloop.testing.harness import state_of
from deltaloop.testing.injected_faults.core.program_writes import LASTS, ProgramWrite
from lab.shards.checking import Accepted

FAILURES = {
    "former": "accepted writes of a former owner",
    "twice": "keys reconciled by two members at a time",
    "lost": "keys lost",
    "other": "other failures",
}
MAP = ("configmaps", "default/deltaloop-harness-shards")
"""Compare-and-swap guards the owners in this object, and a late report of a load changes no owner."""
LOST = {Oracle.END_STATE, Oracle.SCENARIO, Oracle.SETTLES}
CRD = Path(__file__).parents[2] / "examples" / "database" / "crd.yaml"
NAMESPACES = ("one", "two")


async def rested(world: Harness) -> None:
    """Wait until members that are paused or disconnected work again."""
    await world.settled()
    while any(replica.held_up for replica in world.replicas):
        await world.advance(LASTS)
        await world.settled()


async def share_databases(world: Harness) -> None:
    """Two members: create and scale a Database in each namespace, then stop one member and scale again."""
    await world.install(CRD)
    for name in NAMESPACES:
        await world.client.create(dl.kinds.NAMESPACE, {"metadata": {"name": name}})
    await world.start(reconcile, shards=True)
    other = await world.start(reconcile, shards=True)
    for name in NAMESPACES:
        await world.client.create(DATABASE, {"metadata": {"name": "a"}, "spec": {"replicas": 1}}, namespace=name)
    await rested(world)
    for name in NAMESPACES:
        await world.client.patch(DATABASE, "a", {"spec": {"replicas": 2}}, namespace=name)
    await rested(world)
    for name in NAMESPACES:
        await world.client.patch(DATABASE, "a", {"spec": {"replicas": 3}}, namespace=name)
    try:
        await other.stop()
    except ShutdownTimeoutError:  # it was paused
        await other.crash()
    await rested(world)
    for name in NAMESPACES:
        found = await world.client.get("apps/v1/StatefulSet", "a", namespace=name)
        assert found["spec"]["replicas"] == 3


class Observed:
    """Reconciles and accepted writes of one run. The scenario has one Database in each namespace."""

    def __init__(self, world: Harness) -> None:
        self.accepted = Accepted()
        self.twice: list[str] = []
        self.reconciles = 0
        self._world = world
        self._uids: dict[tuple[str, str], str] = {}
        self._versions: dict[tuple[str, str], int] = {}

    def began(self, runs: Runs[Any], key: str) -> None:
        """Look for a reconcile of the same key by another member. A paused process does not reconcile."""
        self.reconciles += 1
        for replica in self._world.replicas:
            if not replica.alive:
                continue
            for loop in replica.manager.loops:
                if loop.runs is runs:
                    member = replica.manager._shards
                    self._uids[replica.name, key.partition("/")[0]] = "" if member is None else member._member.uid
                elif any(run.key == key for run in loop.runs.present()) and not replica._process.paused:
                    self.twice.append(f"{key}, also by {replica.identity}")

    async def wrote(self, write: ProgramWrite) -> None:
        """Keep an accepted write of a reconcile if it changed the object."""
        place, version = (write.resource, write.key), int(write.version or 0)
        if write.reason is not None and version > self._versions.get(place, 0):
            self._versions[place] = version
            namespace = write.key.partition("/")[0]
            self.accepted.writes.append((version, namespace, self._uids[write.replica, namespace]))

    def ended(self) -> None:
        """Read the accepted maps, also after lost answers."""
        assert self._world.server is not None
        for change in self._world.server.changes_of("configmaps", after=0):
            if change.new is not None and change.new.name.endswith("-shards"):
                self.accepted.maps.append((change.revision, ShardMap.decode(change.new["data"]["ranges"])))

    @property
    def moves(self) -> int:
        """Number of times that a Database changed its owner."""
        owners = [[each.find(shard_hash(name)).owner for name in NAMESPACES] for _, each in self.accepted.maps]
        return sum(bool(a) and a != b for old, new in pairwise(owners) for a, b in zip(old, new, strict=True))


class Observer:
    """Scenario that observes its runs. It observes all reconciles in this process."""

    def __init__(self) -> None:
        self.last: Observed | None = None
        begin = Runs[Any].begin

        def began(runs: Runs[Any], key: str, now: float) -> Any:
            if self.last is not None:
                self.last.began(runs, key)
            return begin(runs, key, now)

        Runs.begin = began  # type: ignore[assignment, method-assign]

    async def scenario(self, world: Harness) -> None:
        self.last = observed = Observed(world)
        state_of(world).after_writes.append(observed.wrote)
        try:
            await share_databases(world)
        finally:
            observed.ended()


def schedules(simulation: Simulation, seed: int) -> Iterator[Schedule]:
    names, kinds = names_of(simulation.reference.writes), in_question(ALL_KINDS, webhooks=False)
    yield ()
    yield from (known := [*systematic(names, kinds)])
    seen: set[Schedule] = {*known}
    draw = random.Random(f"schedules of {seed}").random
    while True:
        drawn = combined(names, draw, kinds)
        if drawn not in seen:
            seen.add(drawn)
            yield drawn


def result_of(simulation: Simulation, observer: Observer, schedule: Schedule) -> dict[str, Any]:
    began = time.process_time()
    run, observed = simulation.run(schedule), observer.last
    assert observed is not None
    failure = simulation.judge(schedule, run)
    problems = [each for each in (() if failure is None else failure.problems) if each.place != MAP]
    return {
        "faults": schedule_text(schedule),
        "cpu": round(time.process_time() - began, 3),
        "writes": len(observed.accepted.writes),
        "reconciles": observed.reconciles,
        "moves": observed.moves,
        "former": [str(each) for each in observed.accepted.by_former_owners()],
        "twice": observed.twice,
        "lost": [str(each) for each in problems if each.oracle in LOST],
        "other": [f"{each.oracle}: {each}" for each in problems if each.oracle not in LOST],
    }


def summary(results: Sequence[dict[str, Any]]) -> list[str]:
    total = {name: sum(each[name] for each in results) for name in ("cpu", "reconciles", "writes", "moves")}
    failed = {name: [each for each in results if each[name]] for name in FAILURES}
    return [
        f"{len(results)} schedules, {total['cpu']:.0f} s of CPU",
        f"{total['reconciles']} reconciles, {total['writes']} accepted writes, {total['moves']} changes of owners",
        *(f"{title}: {sum(len(each[name]) for each in failed[name])}" for name, title in FAILURES.items()),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="number of schedules of all parts")
    parser.add_argument("--seed", type=int, default=0, help="seed of the programs and of the random schedules")
    parser.add_argument("--part", default="1/1", help="1/2 and 2/2 are the halves of the schedules, for two processes")
    parser.add_argument("--record", type=Path, help="file with the results")
    parser.add_argument("--replay", metavar="FAULTS", help="run one schedule")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    observer = Observer()
    simulation = Simulation(observer.scenario, SimulationOptions(seed=arguments.seed, may_differ=MAY_DIFFER))
    results: list[dict[str, Any]] = []
    if arguments.record is not None and arguments.record.exists():
        results = [json.loads(line) for line in arguments.record.read_text().splitlines()]
    with quiet():
        every = schedules(simulation, arguments.seed)
        if arguments.replay is not None:
            every = iter([parse_schedule(arguments.replay)])
        for schedule in islice(islice(every, part - 1, arguments.runs, parts), len(results), None):
            results.append(result_of(simulation, observer, schedule))
            if any(results[-1][name] for name in FAILURES):
                print(json.dumps(results[-1], indent=1), flush=True)
            if arguments.record is not None:
                with arguments.record.open("a") as lines:
                    lines.write(json.dumps(results[-1]) + "\n")
    print(*summary(results), sep="\n")
    return int(any(each[name] for each in results for name in FAILURES))


if __name__ == "__main__":
    sys.exit(main())
