"""What the rebuilt bugs have in common: a cluster that the user changes, and objects with a few fields."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import deltaloop as dl
from deltaloop.testing import Harness, ModelName
from examples.simulation.bugs.sets import POD, SET

KIND = dl.kinds.CONFIG_MAP
CLUSTER = "cluster"

Reconcile: TypeAlias = Callable[[dl.Context], Awaitable[dl.Result | None]]
Step: TypeAlias = Callable[[Harness], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A published bug.

    Attributes:
        name: The project and the number of the report.
        link: The report.
        pattern: ``intermediate`` (a crash between two writes), ``stale`` (old news are believed), or ``unobserved`` (a
            state that came and went was never seen).
        wrong: The reconciler as it was, in its essence.
        mended: The same, mended.
        steps: What the user does; the programs come to rest after each.
        replay: A schedule that shows it.
        environment: What else of a cluster runs; then the operator hears of sets and Pods, too.
        writes: What the operator writes beside ConfigMaps.
    """

    name: str
    link: str
    pattern: str
    wrong: Reconcile
    mended: Reconcile
    steps: Sequence[Step]
    replay: str
    environment: Sequence[ModelName] = ()
    writes: Sequence[dl.ResourceType[dl.Resource]] = ()

    def scenario(self, *, mended: bool) -> Callable[[Harness], Awaitable[None]]:
        """Return what ``simulate`` runs."""
        function = self.mended if mended else self.wrong
        others = [SET, POD] if self.environment else []
        watches = [dl.Watch(kind, to=lambda _: [dl.Request("default", CLUSTER)]) for kind in others]

        @dl.controller(KIND, name=self.name, watches=watches, writes=[KIND, *self.writes])
        async def reconcile(request: dl.Request, ctx: dl.Context) -> dl.Result | None:
            if request.name == CLUSTER and await ctx.client.find(KIND, CLUSTER) is not None:
                return await function(ctx)
            return None

        async def scenario(world: Harness) -> None:
            if self.environment:
                await world.environment(*self.environment)
            await world.start(reconcile)
            for step in self.steps:
                await step(world)
                await world.settled()

        return scenario


def creates(**data: str) -> Step:
    """The user makes a cluster."""

    async def step(world: Harness) -> None:
        await world.client.create(KIND, {"metadata": {"name": CLUSTER}, "data": data})

    return step


def changes(**data: str) -> Step:
    """The user asks the cluster for something else."""

    async def step(world: Harness) -> None:
        await world.client.patch(KIND, CLUSTER, {"data": data})

    return step


async def deletes(world: Harness) -> None:
    """The user deletes the cluster."""
    await world.client.delete(KIND, CLUSTER)


async def cluster(ctx: dl.Context) -> dl.Resource:
    """Return the cluster as the cache has it."""
    return await ctx.client.get(KIND, CLUSTER)


async def asked(ctx: dl.Context, field: str, *, live: bool = False) -> str:
    """Return what the user asks for.

    Args:
        ctx: Of the reconcile.
        field: Of the cluster.
        live: Whether the server is asked, and not the cache.
    """
    found = await (ctx.client.live if live else ctx.client).get(KIND, CLUSTER)
    return str(found["data"][field])


async def value(ctx: dl.Context, name: str, field: str, *, live: bool = False) -> str | None:
    """Return a field of an object; None if there is no such object, or no such field.

    Args:
        ctx: Of the reconcile.
        name: The object's name.
        field: The field.
        live: Whether the server is asked, and not the cache.
    """
    client = ctx.client.live if live else ctx.client
    found = await client.find(KIND, name)
    return None if found is None else found.get("data", {}).get(field)


async def exists(ctx: dl.Context, name: str) -> bool:
    """Tell whether there is an object."""
    return await ctx.client.find(KIND, name) is not None


async def named(ctx: dl.Context, prefix: str, *, live: bool = False) -> set[str]:
    """Return the names of the objects whose names begin with something.

    Args:
        ctx: Of the reconcile.
        prefix: The beginning.
        live: Whether the server is asked, and not the cache.
    """
    found = await (ctx.client.live if live else ctx.client).list(KIND)
    return {each.name for each in found if each.name.startswith(prefix)}


async def make(ctx: dl.Context, name: str, **data: str) -> None:
    """Make an object."""
    await ctx.client.create(KIND, {"metadata": {"name": name}, "data": data})


async def put(ctx: dl.Context, name: str, **data: str) -> None:
    """Have an object hold these fields, beside those that it has."""

    def wanted(fields: dict[str, Any]) -> None:
        fields["data"] = {**(fields.get("data") or {}), **data}

    await ctx.client.create_or_update(KIND, name, wanted)


async def note(ctx: dl.Context, name: str, **data: str) -> None:
    """Have an object that is there hold these fields, beside those that it has."""
    await ctx.client.patch(KIND, name, {"data": data})


async def drop(ctx: dl.Context, name: str, *, by_name: bool = False) -> None:
    """Delete an object, if it is there.

    Args:
        ctx: Of the reconcile.
        name: The object's name.
        by_name: Whether whatever has the name now is deleted, and not what this program has seen.
    """
    client = ctx.client.live if by_name else ctx.client
    if await client.find(KIND, name) is not None:
        await client.delete(KIND, name)
