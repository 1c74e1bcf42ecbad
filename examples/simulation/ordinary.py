"""The other examples under the simulator: they were not written for it, and it has nothing to say against them.

    python -m examples.simulation.ordinary [--runs 1000] [--seed 0] [NAME ...]

Prints for each how many schedules were tried, at which writes, and how many a CPU second; if it is interrupted, what it
has found until then. Exit code 1 if any raises an alarm.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import deltaloop as dl
from deltaloop.errors import InternalServerError
from deltaloop.simulation import Simulation, SimulationOptions
from deltaloop.testing import Harness
from examples.database.controller import Database
from examples.database.controller import reconcile as database_controller
from examples.database.webhooks import WEBHOOKS, OldDatabase, OldDatabaseSpec
from examples.provisioner.controller import Options as ProvisionerOptions
from examples.provisioner.controller import Provisioner
from examples.replicator.controller import TO, replicator
from examples.sample_controller import controller as sample

DATABASE = "example.com/v1/Database"
_EXAMPLES = Path(__file__).parent.parent
_CLAIM, _CONFIG_MAP, _NAMESPACE = dl.kinds.PERSISTENT_VOLUME_CLAIM, dl.kinds.CONFIG_MAP, dl.kinds.NAMESPACE


async def copies_are_kept(world: Harness) -> None:
    """The replicator: a source, a namespace more, another text, a copy that somebody deletes, and the end of it all."""
    for name in ("a", "b"):
        await world.client.create(_NAMESPACE, {"metadata": {"name": name, "labels": {"copies": "yes"}}})
    source: dict[str, Any] = {"metadata": {"name": "source", "annotations": {TO: "copies=yes"}}, "data": {"text": "1"}}
    await world.start(replicator(["default/source"]))
    await world.client.create(_CONFIG_MAP, source, namespace="default")
    await world.settled()
    await world.client.create(_NAMESPACE, {"metadata": {"name": "c", "labels": {"copies": "yes"}}})
    await world.client.patch(_CONFIG_MAP, "source", {"data": {"text": "2"}}, namespace="default")
    await world.settled()
    await world.client.delete(_CONFIG_MAP, "source", namespace="a")
    await world.settled()
    await world.client.delete(_CONFIG_MAP, "source", namespace="default")
    await world.settled()


class _Storage:
    async def make(self, name: str, size: str) -> str:
        return f"{name} of {size}"


async def claims_get_volumes(world: Harness) -> None:
    """The provisioner: two replicas that contend, three claims, one of them gone before its volume is needed."""

    def program(identity: str) -> Callable[[dl.Client], Awaitable[object]]:
        options = ProvisionerOptions(storage_class="ours", lease=dl.LeaderElectionConfig(renew_in_thread=False))

        async def main(client: dl.Client) -> None:
            await Provisioner(client, _Storage(), options, identity=identity).run()

        return main

    for identity in ("one", "two"):
        await world.run(program(identity))
    for name in ("first", "second"):
        resources = {"requests": {"storage": "1Gi"}}
        spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": "ours", "resources": resources}
        await world.client.create(_CLAIM, {"metadata": {"name": name}, "spec": spec})
    await world.settled(600)
    await world.client.delete(_CLAIM, "first")
    await world.settled(600)


async def foos_get_deployments(world: Harness) -> None:
    """The sample controller: a Foo, more replicas of it, and its end."""
    await world.install(sample.CRD_FILE)

    async def main(client: dl.Client) -> None:
        lease = dl.LeaderElectionConfig(renew_in_thread=False)
        await sample.run_with(client, sample.Options(identity="one", lease=lease))

    await world.run(main)
    await world.client.create(sample.FOO, {"metadata": {"name": "a"}, "spec": {"deploymentName": "a", "replicas": 1}})
    await world.settled(600)
    await world.client.patch(sample.FOO, "a", {"spec": {"replicas": 2}})
    await world.settled(600)
    await world.client.delete(dl.kinds.DEPLOYMENT, "a")
    await world.settled(600)


async def databases_live(world: Harness) -> None:
    """The Database operator: a database is made, grows, and goes once its last backup is made."""
    await world.install(_EXAMPLES / "database" / "crd.yaml")
    await world.start(database_controller)
    await world.client.create(DATABASE, {"metadata": {"name": "a"}, "spec": {"replicas": 1}})
    await world.settled()
    await world.client.patch(DATABASE, "a", {"spec": {"replicas": 2}})
    await world.settled()
    await world.client.delete(DATABASE, "a")
    await world.settled()
    done = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z"}
    conditions = [{"type": name, "status": "True"} for name in ("SuccessCriteriaMet", "Complete")]
    status = {"status": {**done, "conditions": conditions}}
    [job] = await world.client.list_all(dl.kinds.JOB)
    await world.client.patch(dl.kinds.JOB, job.name, status, subresource="status")
    await world.settled()


async def databases_run(world: Harness) -> None:
    """The same in a cluster, where Pods take time: servers become ready, and the last backup is made by a Pod."""
    await world.environment("statefulsets", "jobs")
    await world.install(_EXAMPLES / "database" / "crd.yaml")
    await world.start(database_controller)
    await world.client.create(DATABASE, {"metadata": {"name": "a"}, "spec": {"replicas": 1}})
    await world.settled()
    assert (await world.client.get(DATABASE, "a"))["status"]["readyReplicas"] == 1
    await world.client.delete(DATABASE, "a")
    await world.settled()
    assert await world.client.find(DATABASE, "a") is None


async def databases_are_judged(world: Harness) -> None:
    """The same with its webhooks: a Database of the old version grows by the new one, and is read by the old one."""

    async def until_answered(change: Callable[[], Awaitable[object]]) -> None:
        done = False
        while not done:
            try:
                with suppress(dl.AlreadyExistsError):
                    await change()
                done = True
            except InternalServerError:  # the program is just gone, and with it who answers
                await world.advance(1)

    await world.install(dl.generate_crd(Database, OldDatabase))
    await world.start(database_controller, webhooks=WEBHOOKS)
    old = OldDatabase(metadata=dl.ObjectMeta(name="a"), spec=OldDatabaseSpec(servers=1, image="postgres"))
    await until_answered(lambda: world.client.create(OldDatabase, old))
    await world.settled()
    await until_answered(lambda: world.client.patch(Database, "a", {"spec": {"replicas": 2}}))
    await world.settled()
    assert (await world.client.get(dl.kinds.STATEFUL_SET, "a"))["spec"]["replicas"] == 2
    assert (await world.client.get(OldDatabase, "a")).spec == OldDatabaseSpec(servers=2)


SCENARIOS = {
    "replicator": copies_are_kept,
    "provisioner": claims_get_volumes,
    "sample_controller": foos_get_deployments,
    "database": databases_live,
    "database_runs": databases_run,
    "database_webhooks": databases_are_judged,
}


def look(name: str, options: SimulationOptions) -> bool:
    """Print a line about an example, and tell whether there is no alarm."""
    began = time.process_time()
    simulation = Simulation(SCENARIOS[name], options)
    try:
        report = simulation.explore()
    except KeyboardInterrupt:
        print(f"{name}: interrupted: {simulation.found or 'before the first run has ended'}", flush=True)
        raise
    cpu = time.process_time() - began
    told = f"ALARM: {report.failures[0].replay}" if report.failures else "no alarm"
    print(f"{name:<18} {report.runs:>7} {len(report.writes):>7} {report.runs / cpu:>10.1f}   {told}", flush=True)
    for failure in report.failures:
        print(failure)
    return not report.failures


def main() -> int:
    """Look at those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--runs", type=int, default=1000, help="of each")
    parser.add_argument("--seed", type=int, default=0, help="decides all chance")
    asked = parser.parse_args()
    unknown = sorted({*asked.names} - {*SCENARIOS})
    if unknown:
        parser.error(f"there is no example {', '.join(unknown)}; known are {', '.join(SCENARIOS)}")
    print(f"{'example':<18} {'runs':>7} {'writes':>7} {'runs/CPU s':>10}")
    options = SimulationOptions(runs=asked.runs, seed=asked.seed)
    right = [look(name, options) for name in asked.names or SCENARIOS]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
