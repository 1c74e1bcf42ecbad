"""Steps: Kubernetes' sample-controller, and our own examples, whose Pods are scheduled and become ready."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from examples.run import NAMES

import deltaloop as dl
from lab.world import build
from lab.world.programs import running
from lab.world.settled import is_ready, is_settled
from lab.world.world import World

FOO = {
    "apiVersion": "samplecontroller.k8s.io/v1alpha1",
    "kind": "Foo",
    "metadata": {"name": "example"},
    "spec": {"deploymentName": "example", "replicas": 2},
}
EXAMPLE_SECONDS = 240.0


async def sample_controller(world: World) -> None:
    """sample-controller makes a Deployment of a Foo, scales it, repairs it, and says how many Pods there are."""
    crd = next(build.SAMPLE_CONTROLLER.file_folder(0).iterdir())
    await world.kubectl("apply", "-f", str(crd))
    await world.kubectl("wait", "--for=condition=Established", "crd/foos.samplecontroller.k8s.io", "--timeout=30s")
    command: list[str | Path] = [build.SAMPLE_CONTROLLER.path, f"-kubeconfig={world.place.kubeconfig}"]
    with running(world.place, "sample-controller", command):
        await _foo(world)
    await world.kubectl("delete", "crd", "foos.samplecontroller.k8s.io")


async def _foo(world: World) -> None:
    foo = json.dumps(FOO)
    world.record_text("create", await world.kubectl("create", "-f", "-", text=foo))
    await _until_available(world, 2)
    await world.record_objects("two", "foos.samplecontroller.k8s.io", "deployments", "replicasets")
    await world.kubectl("patch", "foo", "example", "--type=merge", "-p", '{"spec":{"replicas":3}}')
    await _until_available(world, 3)
    (before,) = await world.objects("deployments.apps")
    await world.kubectl("scale", "deployment", "example", "--replicas=1")

    def is_repaired(each: dl.Resource) -> bool:
        again = each.generation >= before.generation + 2 and each["spec"]["replicas"] == 3
        return again and is_settled(each.to_dict())

    await world.until_all("deployments.apps", is_repaired, count=1)
    # The Foo may say 3 from before, then 1, and then 3: what is recorded is one of its threes.
    await world.record_objects("three", "foos.samplecontroller.k8s.io", "deployments")
    await world.kubectl("delete", "foo", "example")

    async def nothing() -> bool:
        return not [*await world.objects("deployments.apps"), *await world.objects("pods")]

    await world.until("the Deployment goes with its Foo", nothing)


async def _until_available(world: World, count: int) -> None:
    def available(foo: dl.Resource) -> bool:
        return bool(foo.get("status", {}).get("availableReplicas") == count)

    await world.until_all("pods", is_ready, count=count)
    await world.until_all("foos.samplecontroller.k8s.io", available, count=1)


async def our_examples(world: World) -> None:
    """Our four examples show all that they have to show."""
    for name in NAMES:
        # Five thousand copies take a real server two minutes, and show no more than these.
        number = ("--objects", "500") if name == "replicator" else ()
        command = [sys.executable, "-m", "examples.run", name, *number]
        done = await world.run(command, seconds=EXAMPLE_SECONDS)
        lines = [" ".join(line.split()) for line in done.stdout.splitlines() if line.startswith("  ")]
        # How often something was tried is chance.
        world.record(name, {"shown": [re.sub(r"\d+", "<number>", line) for line in lines], "code": done.code})
