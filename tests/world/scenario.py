"""The scenario: its steps in their order, and how they are run on one server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import deltaloop as dl
from deltaloop.testing.control_plane import ControlPlaneAssets
from tests.world import operators, packages, upkeep, workloads
from tests.world.programs import Place, controllers, serving
from tests.world.world import StepError, World

Step = Callable[[World], Awaitable[None]]
STEP_SECONDS = 400.0
# Nodes come first; the others need nothing of each other.
STEPS: tuple[Step, ...] = (
    workloads.nodes,
    workloads.namespace_contents,
    workloads.deployment,
    workloads.services,
    workloads.rolling_update,
    workloads.statefulset,
    workloads.daemonset,
    workloads.jobs,
    workloads.cronjobs,
    upkeep.eviction,
    upkeep.drain,
    upkeep.garbage,
    upkeep.namespace_end,
    packages.helm_3,
    packages.helm_4,
    operators.sample_controller,
    operators.our_examples,
)
NAMES = tuple(step.__name__ for step in STEPS)


def run(server: str, assets: ControlPlaneAssets, folder: Path, wanted: Collection[str]) -> dict[str, Any]:
    """Run the scenario on one server: of each step its seconds, what it recorded, and why it ended early."""
    with serving(server, assets, folder / server) as place, controllers(place):
        return asyncio.run(_run(place, wanted))


async def _run(place: Place, wanted: Collection[str]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    async with dl.connect(kubeconfig=str(place.kubeconfig)) as client:
        for step in STEPS:
            if step.__name__ in wanted or step is workloads.nodes:
                world = World(place, client, namespace=f"world-{step.__name__.replace('_', '-')}")
                results[step.__name__] = await _run_step(step, world)
    return results


async def _run_step(step: Step, world: World) -> dict[str, Any]:
    started_at = time.monotonic()
    error = ""
    try:
        async with asyncio.timeout(STEP_SECONDS):
            await world.client.create(dl.kinds.NAMESPACE, {"metadata": {"name": world.namespace}})
            await step(world)
    except TimeoutError:
        error = f"it did not end within {STEP_SECONDS:g} s"
    except (StepError, dl.DeltaloopError) as failure:
        error = str(failure)
    try:
        await _end_namespace(world)
    except (StepError, dl.DeltaloopError) as failure:
        error = error or str(failure)
    seconds = time.monotonic() - started_at
    print(f"{world.place.server:10}{step.__name__:24}{seconds:7.1f} s  {error or 'ended'}"[:400], flush=True)
    return {"seconds": round(seconds, 1), "records": world.records, "error": error}


async def _end_namespace(world: World) -> None:
    """Wait for the end of a step's namespace: its Pods would be in the way of the next one's."""

    async def is_gone() -> bool:
        try:
            await world.client.delete(dl.kinds.NAMESPACE, world.namespace)
        except dl.NotFoundError:
            return True
        except dl.ConflictError:
            pass  # it is on its way
        return False

    await world.until(f"the namespace {world.namespace} is gone", is_gone)
