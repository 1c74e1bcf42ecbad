"""Run the other examples in the simulator. It must find no failures.

    python -m examples.simulation.ordinary [--runs 1000] [--seed 0] [NAME ...]

Prints the number of runs and writes of each example, and the runs per CPU second. After an interrupt, it prints the
failures found so far. The exit code is 1 if an example fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

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


async def replicate_config_maps(world: Harness) -> None:
    """Replicator: add a namespace, change the source, delete a copy, and delete the source."""
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
    async def create(self, name: str, size: str) -> str:
        return f"{name} of {size}"


async def provision_volumes(world: Harness) -> None:
    """Provisioner: two replicas with leader election, and two claims, one of which is deleted."""

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


async def manage_foos(world: Harness) -> None:
    """Sample controller: create and scale a Foo, and delete its Deployment."""
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


async def manage_databases(world: Harness) -> None:
    """Database operator: create and scale a database, and delete it after its final backup."""
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


async def share_databases(world: Harness) -> None:
    """Database operator in two processes that share the databases: create, scale and delete some, and stop one."""
    await world.install(_EXAMPLES / "database" / "crd.yaml")
    names = ("one", "two", "three")
    for name in names:
        await world.client.create(_NAMESPACE, {"metadata": {"name": name}})
    await world.start(database_controller, shards=True)
    other = await world.start(database_controller, shards=True)
    for name in names:
        await world.client.create(DATABASE, {"metadata": {"name": "a"}, "spec": {"replicas": 1}}, namespace=name)
    await world.settled()
    for name in names:
        await world.client.patch(DATABASE, "a", {"spec": {"replicas": 2}}, namespace=name)
    await world.settled()
    await other.stop()
    for name in names:
        await world.client.patch(DATABASE, "a", {"spec": {"replicas": 3}}, namespace=name)
    await world.settled()
    for name in names:
        found = await world.client.get("apps/v1/StatefulSet", "a", namespace=name)
        assert found["spec"]["replicas"] == 3


async def manage_databases_with_pods(world: Harness) -> None:
    """Database operator with simulated Pods: the servers become ready, and a Pod makes the final backup."""
    await world.environment("statefulsets", "jobs")
    await world.install(_EXAMPLES / "database" / "crd.yaml")
    await world.start(database_controller)
    await world.client.create(DATABASE, {"metadata": {"name": "a"}, "spec": {"replicas": 1}})
    await world.settled()
    assert (await world.client.get(DATABASE, "a"))["status"]["readyReplicas"] == 1
    await world.client.delete(DATABASE, "a")
    await world.settled()
    assert await world.client.find(DATABASE, "a") is None


async def manage_databases_with_webhooks(world: Harness) -> None:
    """Database operator with webhooks: create a Database in the old version, scale it in the new one, and read it."""

    async def retry(change: Callable[[], Awaitable[object]]) -> None:
        done = False
        while not done:
            try:
                with suppress(dl.AlreadyExistsError):
                    await change()
                done = True
            except InternalServerError:  # the program with the webhooks has crashed
                await world.advance(1)

    await world.install(dl.generate_crd(Database, OldDatabase))
    await world.start(database_controller, webhooks=WEBHOOKS)
    old = OldDatabase(metadata=dl.ObjectMeta(name="a"), spec=OldDatabaseSpec(servers=1, image="postgres"))
    await retry(lambda: world.client.create(OldDatabase, old))
    await world.settled()
    await retry(lambda: world.client.patch(Database, "a", {"spec": {"replicas": 2}}))
    await world.settled()
    assert (await world.client.get(dl.kinds.STATEFUL_SET, "a"))["spec"]["replicas"] == 2
    assert (await world.client.get(OldDatabase, "a")).spec == OldDatabaseSpec(servers=2)


SCENARIOS = {
    "replicator": replicate_config_maps,
    "provisioner": provision_volumes,
    "sample_controller": manage_foos,
    "database": manage_databases,
    "database_runs": manage_databases_with_pods,
    "database_shards": share_databases,
    "database_webhooks": manage_databases_with_webhooks,
}


MAY_DIFFER = (("v1/ConfigMap", "default/deltaloop-harness-shards", "data"),)
"""The owners of ranges depend on the order in which programs start."""


def search(name: str, options: SimulationOptions) -> bool:
    """Print the line of an example, and return whether it has no failures."""
    began = time.process_time()
    simulation = Simulation(SCENARIOS[name], msgspec.structs.replace(options, may_differ=MAY_DIFFER))
    try:
        report = simulation.explore()
    except KeyboardInterrupt:
        print(f"{name}: interrupted: {simulation.found or 'the first run did not end'}", flush=True)
        raise
    cpu = time.process_time() - began
    result = f"ALARM: {report.failures[0].replay}" if report.failures else "no alarm"
    print(f"{name:<18} {report.runs:>7} {len(report.writes):>7} {report.runs / cpu:>10.1f}   {result}", flush=True)
    for failure in report.failures:
        print(failure)
    return not report.failures


def main() -> int:
    """Run the specified examples, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(SCENARIOS)}")
    parser.add_argument("--runs", type=int, default=1000, help="limit of runs of each example")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    arguments = parser.parse_args()
    unknown = sorted({*arguments.names} - {*SCENARIOS})
    if unknown:
        parser.error(f"unknown example {', '.join(unknown)}. Use {', '.join(SCENARIOS)}.")
    print(f"{'example':<18} {'runs':>7} {'writes':>7} {'runs/CPU s':>10}")
    options = SimulationOptions(runs=arguments.runs, seed=arguments.seed)
    passed = [search(name, options) for name in arguments.names or SCENARIOS]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
