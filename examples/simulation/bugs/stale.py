"""A program that comes back believes an API server that lags, and undoes what is new."""

from __future__ import annotations

import deltaloop as dl
from examples.simulation.bugs.parts import (
    KIND,
    Bug,
    Reconcile,
    asked,
    changes,
    cluster,
    creates,
    deletes,
    drop,
    exists,
    make,
    value,
)

_FINALIZER = "example.com/volumes"


def _cleans_up(*, by_name: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Deletes the volume of a cluster that is being deleted: by its name, which the next cluster's has, too."""
        present = await cluster(ctx)
        if present.deletion_timestamp is None:
            await ctx.client.add_finalizer(KIND, present, _FINALIZER)
            if not await exists(ctx, "volume"):
                await make(ctx, "volume")
            return
        await drop(ctx, "volume", by_name=by_name)
        await ctx.client.remove_finalizer(KIND, present, _FINALIZER)

    return reconcile


def _scales(*, by_name: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Deletes Pods beyond the wanted number, and their volumes: those of the second scale-up, by old news."""
        wanted = int(await asked(ctx, "nodes"))
        for node in range(wanted):
            for name in (f"volume-{node}", f"pod-{node}"):
                if not await exists(ctx, name):
                    await make(ctx, name)
        for node in range(wanted, 3):
            if await exists(ctx, f"pod-{node}"):
                await drop(ctx, f"volume-{node}", by_name=by_name)
                await drop(ctx, f"pod-{node}", by_name=by_name)

    return reconcile


def _resizes(*, live: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Makes the set anew if its size is another one than the wanted: also if that is smaller, and old."""
        size, present = await asked(ctx, "size", live=live), await value(ctx, "set", "size", live=True)
        if present is not None and present != size:
            await drop(ctx, "set", by_name=True)
            present = None
        if present is None:
            await make(ctx, "set", size=size)

    return reconcile


def _replaces_a_budget(*, live: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Makes the disruption budget anew if it says something else than the cluster, however old that is."""
        most, present = await asked(ctx, "most", live=live), await value(ctx, "budget", "most", live=True)
        if present != most:
            await drop(ctx, "budget", by_name=True)
            await make(ctx, "budget", most=most)

    return reconcile


ZOOKEEPER_312 = Bug(
    name="zookeeper-312",
    link="https://github.com/pravega/zookeeper-operator/issues/312",
    pattern="stale",
    wrong=_cleans_up(by_name=True),
    mended=_cleans_up(by_name=False),
    steps=(creates(), deletes, creates()),
    replay="stale:create:configmaps:2:5",
)
ZOOKEEPER_314 = Bug(
    name="zookeeper-314",
    link="https://github.com/pravega/zookeeper-operator/issues/314",
    pattern="stale",
    wrong=_scales(by_name=True),
    mended=_scales(by_name=False),
    steps=(creates(nodes="2"), changes(nodes="1"), changes(nodes="2")),
    replay="stale:create:configmaps:5:3",
)
RABBITMQ_653 = Bug(
    name="rabbitmq-653",
    link="https://github.com/rabbitmq/cluster-operator/issues/653",
    pattern="stale",
    wrong=_resizes(live=False),
    mended=_resizes(live=True),
    steps=(creates(size="10"), changes(size="15")),
    replay="stale:delete:configmaps:1:2",
)
CASSKOP_321 = Bug(
    name="casskop-321",
    link="https://github.com/Orange-OpenSource/casskop/issues/321",
    pattern="stale",
    wrong=_replaces_a_budget(live=False),
    mended=_replaces_a_budget(live=True),
    steps=(creates(most="1"), changes(most="2")),
    replay="stale:delete:configmaps:1:2",
)
BUGS = (ZOOKEEPER_312, ZOOKEEPER_314, RABBITMQ_653, CASSKOP_321)
