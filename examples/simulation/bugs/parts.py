"""Parts of the rebuilt bugs: a cluster that the user changes, and objects with a few fields."""

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
    """Published bug.

    Attributes:
        name: Project and number of the report.
        link: URL of the report.
        pattern: ``intermediate`` (crash between two writes), ``stale`` (stale cache), or ``unobserved`` (missed state).
        broken: Reconciler with the bug.
        fixed: Reconciler without the bug.
        steps: Steps of the user. The next step starts after the programs have settled.
        replay: Schedule that shows the bug.
        environment: Models of the cluster. With models, the operator also watches sets and Pods.
        writes: Kinds other than ConfigMaps that the operator writes.
    """

    name: str
    link: str
    pattern: str
    broken: Reconcile
    fixed: Reconcile
    steps: Sequence[Step]
    replay: str
    environment: Sequence[ModelName] = ()
    writes: Sequence[dl.ResourceType[dl.Resource]] = ()

    def scenario(self, *, fixed: bool) -> Callable[[Harness], Awaitable[None]]:
        """Return the scenario for ``simulate``."""
        function = self.fixed if fixed else self.broken
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
    """Return the step in which the user creates the cluster."""

    async def step(world: Harness) -> None:
        await world.client.create(KIND, {"metadata": {"name": CLUSTER}, "data": data})

    return step


def changes(**data: str) -> Step:
    """Return the step in which the user changes the cluster."""

    async def step(world: Harness) -> None:
        await world.client.patch(KIND, CLUSTER, {"data": data})

    return step


async def deletes(world: Harness) -> None:
    """Delete the cluster as the user."""
    await world.client.delete(KIND, CLUSTER)


async def cluster(ctx: dl.Context) -> dl.Resource:
    """Return the cached cluster."""
    return await ctx.client.get(KIND, CLUSTER)


async def desired(ctx: dl.Context, field: str, *, live: bool = False) -> str:
    """Return a desired value.

    Args:
        ctx: Context of the reconcile.
        field: Field of the cluster.
        live: Whether to read from the server instead of the cache.
    """
    found = await (ctx.client.live if live else ctx.client).get(KIND, CLUSTER)
    return str(found["data"][field])


async def value(ctx: dl.Context, name: str, field: str, *, live: bool = False) -> str | None:
    """Return a field of an object, or None if the object or the field does not exist.

    Args:
        ctx: Context of the reconcile.
        name: Name of the object.
        field: Name of the field.
        live: Whether to read from the server instead of the cache.
    """
    client = ctx.client.live if live else ctx.client
    found = await client.find(KIND, name)
    return None if found is None else found.get("data", {}).get(field)


async def exists(ctx: dl.Context, name: str) -> bool:
    """Return whether the object exists."""
    return await ctx.client.find(KIND, name) is not None


async def named(ctx: dl.Context, prefix: str, *, live: bool = False) -> set[str]:
    """Return the names of the objects with a prefix.

    Args:
        ctx: Context of the reconcile.
        prefix: Prefix of the names.
        live: Whether to read from the server instead of the cache.
    """
    found = await (ctx.client.live if live else ctx.client).list(KIND)
    return {each.name for each in found if each.name.startswith(prefix)}


async def create(ctx: dl.Context, name: str, **data: str) -> None:
    """Create an object."""
    await ctx.client.create(KIND, {"metadata": {"name": name}, "data": data})


async def put(ctx: dl.Context, name: str, **data: str) -> None:
    """Create an object with these fields, or add them to the existing object."""

    def change(fields: dict[str, Any]) -> None:
        fields["data"] = {**(fields.get("data") or {}), **data}

    await ctx.client.create_or_update(KIND, name, change)


async def patch(ctx: dl.Context, name: str, **data: str) -> None:
    """Add these fields to an existing object."""
    await ctx.client.patch(KIND, name, {"data": data})


async def delete(ctx: dl.Context, name: str, *, by_name: bool = False) -> None:
    """Delete an object if it exists.

    Args:
        ctx: Context of the reconcile.
        name: Name of the object.
        by_name: Whether to delete any object with the name, not only the object that this program has read.
    """
    client = ctx.client.live if by_name else ctx.client
    if await client.find(KIND, name) is not None:
        await client.delete(KIND, name)
