"""The scenario: its steps in their order, and how they are run on one server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import deltaloop as dl
from deltaloop.testing.servers.control_plane import ControlPlaneAssets
from lab.world import accounts, charts, operators, packages, upkeep, workloads
from lab.world.events import AWAITED
from lab.world.programs import Place, controllers, serving
from lab.world.world import StepError, World

Step = Callable[[World], Awaitable[None]]
STEP_SECONDS = 400.0
# Nodes come first; the others need nothing of each other. Those that wait most run beside others.
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
    accounts.tokens,
    accounts.aggregated_roles,
    upkeep.eviction,
    upkeep.drain,
    upkeep.garbage,
    upkeep.quota,
    upkeep.namespace_end,
    packages.helm_3,
    packages.helm_4,
    charts.our_chart,
    charts.our_webhooks,
    operators.sample_controller,
    operators.our_examples,
)
NAMES = tuple(step.__name__ for step in STEPS)
# A minute each: the next run of a CronJob, the Pods of a node that is gone.
BESIDE: frozenset[Step] = frozenset({workloads.daemonset, workloads.cronjobs})
# These look at all nodes, which the others change.
AFTER: frozenset[Step] = frozenset({upkeep.drain})


def run(server: str, assets: ControlPlaneAssets, folder: Path, wanted: Collection[str]) -> dict[str, Any]:
    """Run the scenario on one server: of each step its seconds, what it recorded, and why it ended early."""
    with serving(server, assets, folder / server) as place, controllers(place):
        return asyncio.run(_run(place, wanted))


async def _run(place: Place, wanted: Collection[str]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    async with dl.connect(kubeconfig=str(place.kubeconfig)) as client:

        async def run_steps(steps: Iterable[Step]) -> None:
            """Run some steps one after the other; each one's namespace goes while the next one runs."""
            async with asyncio.TaskGroup() as beside:
                for step in steps:
                    world = World(place, client, namespace=f"world-{step.__name__.replace('_', '-')}")
                    result = results[step.__name__] = await _run_step(step, world)
                    beside.create_task(_end_namespace(world, result))

        chosen = [step for step in STEPS if step.__name__ in wanted]
        await run_steps([workloads.nodes])
        async with asyncio.TaskGroup() as lanes:
            for step in chosen:
                if step in BESIDE:
                    lanes.create_task(run_steps([step]))
            others = [step for step in chosen if step not in {*BESIDE, *AFTER, workloads.nodes}]
            lanes.create_task(run_steps(others))
        await run_steps(step for step in chosen if step in AFTER)
    return {name: results[name] for name in NAMES if name in results}


async def _run_step(step: Step, world: World) -> dict[str, Any]:
    started_at = time.monotonic()
    error = ""
    try:
        async with asyncio.timeout(STEP_SECONDS):
            await world.client.create(dl.kinds.NAMESPACE, {"metadata": {"name": world.namespace}})
            await world.until(f"the namespace {world.namespace} is furnished", lambda: _is_furnished(world))
            await step(world)
            await world.record_events(AWAITED.get(step.__name__, ()))
    except TimeoutError:
        error = f"it did not end within {STEP_SECONDS:g} s"
    except (StepError, dl.DeltaloopError) as failure:
        error = str(failure)
    except LookupError as failure:
        error = f"what it read has another form: {failure!r}"
    seconds = time.monotonic() - started_at
    print(f"{world.place.server:10}{step.__name__:24}{seconds:7.1f} s  {error or 'ended'}"[:400], flush=True)
    return {"seconds": round(seconds, 1), "records": world.records, "error": error}


async def _is_furnished(world: World) -> bool:
    """Tell whether a namespace has its account, without which a real server lets no Pod in, and its certificate."""
    return bool(await world.objects("serviceaccounts") and await world.objects("configmaps"))


async def _end_namespace(world: World, result: dict[str, Any]) -> None:
    """Delete the namespace of a step and wait for its end; a step whose namespace stays has failed."""

    async def is_gone() -> bool:
        try:
            await world.client.delete(dl.kinds.NAMESPACE, world.namespace)
        except dl.NotFoundError:
            return True
        except dl.ConflictError:
            pass  # it is on its way
        return False

    try:
        await world.until(f"the namespace {world.namespace} is gone", is_gone)
    except (StepError, dl.DeltaloopError) as failure:
        result["error"] = result["error"] or str(failure)
