"""A program that comes back believes an API server that lags, and undoes what is new, or does it once more."""

from __future__ import annotations

from typing import Final

import deltaloop as dl
from examples.simulation.bugs.parts import (
    CLUSTER,
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
    named,
    note,
    value,
)
from examples.simulation.bugs.sets import CLAIM, MOST_PODS, POD, SET, drop_claim, ending, put_set

_FINALIZER: Final = "example.com/volumes"
_VOLUME: Final = "example.com/volume"
_LOOKS_AGAIN: Final = 10.0


def _cleans_up(what: str, *, by_name: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Deletes what a cluster has that is being deleted: by its name, which the next cluster's has, too."""
        present = await cluster(ctx)
        if present.deletion_timestamp is None:
            await ctx.client.add_finalizer(KIND, present, _FINALIZER)
            if not await exists(ctx, what):
                await make(ctx, what)
            return
        await drop(ctx, what, by_name=by_name)
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


def _deletes_volumes(*, live: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Deletes the claim of a Pod that it sees end: by a name, which that of the next Pod has, too."""
        for node in range(MOST_PODS):
            pod = await ending(ctx, node, live=live)
            if pod is not None:
                await drop_claim(ctx, node)
                await ctx.client.remove_finalizer(POD, pod, _VOLUME)
        await put_set(ctx, await asked(ctx, "nodes", live=True), finalizers=[_VOLUME])

    return reconcile


def _keeps_a_secret(*, of_its_own: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Deletes the secret that a cluster without TLS does not need: that of the cluster which has TLS since."""
        present = await cluster(ctx)
        if present["data"]["tls"] == "yes":
            if not await exists(ctx, "secret"):
                await make(ctx, "secret")
            if of_its_own:
                made = await ctx.client.live.get(KIND, "secret")
                await note(ctx, CLUSTER, secret=made.uid)
            return
        secret = await ctx.client.live.find(KIND, "secret")
        if secret is not None and (not of_its_own or present["data"].get("secret") == secret.uid):
            await drop(ctx, "secret", by_name=True)

    return reconcile


def _makes_machines(*, live: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> dl.Result | None:
        """Makes the machines that it does not see; their names are drawn, so that none is in the way of another."""
        wanted, seen = int(await asked(ctx, "machines")), await named(ctx, "machine-")
        if live and len(seen) < wanted and await named(ctx, "machine-", live=True) - seen:
            return dl.Result(requeue_after=_LOOKS_AGAIN)
        for _ in range(wanted - len(seen)):
            await ctx.client.create(KIND, {"metadata": {"generateName": "machine-"}})
        return None

    return reconcile


ZOOKEEPER_312 = Bug(
    name="zookeeper-312",
    link="https://github.com/pravega/zookeeper-operator/issues/312",
    pattern="stale",
    wrong=_cleans_up("volume", by_name=True),
    mended=_cleans_up("volume", by_name=False),
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
RABBITMQ_648 = Bug(
    name="rabbitmq-648",
    link="https://github.com/rabbitmq/cluster-operator/issues/648",
    pattern="stale",
    wrong=_cleans_up("set", by_name=True),
    mended=_cleans_up("set", by_name=False),
    steps=(creates(), deletes, creates()),
    replay="stale:create:configmaps:2:5",
)
INSTACLUSTR_407 = Bug(
    name="instaclustr-407",
    link="https://github.com/instaclustr/cassandra-operator/issues/407",
    pattern="stale",
    wrong=_deletes_volumes(live=False),
    mended=_deletes_volumes(live=True),
    steps=(creates(nodes="1"), changes(nodes="0"), changes(nodes="1")),
    replay="stale:patch:statefulsets.apps:2:21",
    environment=("statefulsets",),
    writes=(SET, POD, CLAIM),
)
YUGABYTE_35 = Bug(
    name="yugabyte-35",
    link="https://github.com/yugabyte/yugabyte-operator/issues/35",
    pattern="stale",
    wrong=_keeps_a_secret(of_its_own=False),
    mended=_keeps_a_secret(of_its_own=True),
    steps=(creates(tls="no"), changes(tls="yes")),
    replay="stale:create:configmaps:1:2",
)
K0SMOTRON_1534 = Bug(
    name="k0smotron-1534",
    link="https://github.com/k0sproject/k0smotron/issues/1534",
    pattern="stale",
    wrong=_makes_machines(live=False),
    mended=_makes_machines(live=True),
    steps=(creates(machines="1"), changes(machines="2")),
    replay="stale:create:configmaps:2:1",
)
BUGS = (
    ZOOKEEPER_312,
    ZOOKEEPER_314,
    RABBITMQ_653,
    CASSKOP_321,
    RABBITMQ_648,
    INSTACLUSTR_407,
    YUGABYTE_35,
    K0SMOTRON_1534,
)
