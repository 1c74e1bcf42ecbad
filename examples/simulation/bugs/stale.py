"""Bugs in which a restarted program reads a stale API server, and reverts or repeats a change."""

from __future__ import annotations

from typing import Final

import deltaloop as dl
from examples.simulation.bugs.parts import (
    CLUSTER,
    KIND,
    Bug,
    Reconcile,
    changes,
    cluster,
    create,
    creates,
    delete,
    deletes,
    desired,
    exists,
    named,
    patch,
    value,
)
from examples.simulation.bugs.sets import CLAIM, MOST_PODS, POD, SET, delete_claim, put_set, terminating

_FINALIZER: Final = "example.com/volumes"
_VOLUME: Final = "example.com/volume"
_RETRY_AFTER: Final = 10.0


def _cleans_up(name: str, *, by_name: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Delete the object of a terminating cluster by name. The object of the next cluster has the same name."""
        present = await cluster(ctx)
        if present.deletion_timestamp is None:
            await ctx.client.add_finalizer(KIND, present, _FINALIZER)
            if not await exists(ctx, name):
                await create(ctx, name)
            return
        await delete(ctx, name, by_name=by_name)
        await ctx.client.remove_finalizer(KIND, present, _FINALIZER)

    return reconcile


def _scales(*, by_name: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Delete surplus Pods and volumes by name. With a stale cache, this deletes those of the second scale-up."""
        nodes = int(await desired(ctx, "nodes"))
        for node in range(nodes):
            for name in (f"volume-{node}", f"pod-{node}"):
                if not await exists(ctx, name):
                    await create(ctx, name)
        for node in range(nodes, 3):
            if await exists(ctx, f"pod-{node}"):
                await delete(ctx, f"volume-{node}", by_name=by_name)
                await delete(ctx, f"pod-{node}", by_name=by_name)

    return reconcile


def _resizes(*, live: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Recreate the set if the size differs, even if the desired size is stale."""
        size, present = await desired(ctx, "size", live=live), await value(ctx, "set", "size", live=True)
        if present is not None and present != size:
            await delete(ctx, "set", by_name=True)
            present = None
        if present is None:
            await create(ctx, "set", size=size)

    return reconcile


def _replaces_a_budget(*, live: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Recreate the disruption budget if it differs from the cluster, even if the cached cluster is stale."""
        most, present = await desired(ctx, "most", live=live), await value(ctx, "budget", "most", live=True)
        if present != most:
            await delete(ctx, "budget", by_name=True)
            await create(ctx, "budget", most=most)

    return reconcile


def _deletes_volumes(*, live: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Delete the claim of a terminating Pod by name. The claim of the next Pod has the same name."""
        for node in range(MOST_PODS):
            pod = await terminating(ctx, node, live=live)
            if pod is not None:
                await delete_claim(ctx, node)
                await ctx.client.remove_finalizer(POD, pod, _VOLUME)
        await put_set(ctx, await desired(ctx, "nodes", live=True), finalizers=[_VOLUME])

    return reconcile


def _keeps_a_secret(*, own_only: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Delete the secret of a cluster without TLS. With a stale cache, the cluster has TLS and needs the secret."""
        present = await cluster(ctx)
        if present["data"]["tls"] == "yes":
            if not await exists(ctx, "secret"):
                await create(ctx, "secret")
            if own_only:
                found = await ctx.client.live.get(KIND, "secret")
                await patch(ctx, CLUSTER, secret=found.uid)
            return
        secret = await ctx.client.live.find(KIND, "secret")
        if secret is not None and (not own_only or present["data"].get("secret") == secret.uid):
            await delete(ctx, "secret", by_name=True)

    return reconcile


def _makes_machines(*, live: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> dl.Result | None:
        """Create the missing machines. Their names are generated, so a duplicate causes no conflict."""
        machines, seen = int(await desired(ctx, "machines")), await named(ctx, "machine-")
        if live and len(seen) < machines and await named(ctx, "machine-", live=True) - seen:
            return dl.Result(requeue_after=_RETRY_AFTER)
        for _ in range(machines - len(seen)):
            await ctx.client.create(KIND, {"metadata": {"generateName": "machine-"}})
        return None

    return reconcile


ZOOKEEPER_312 = Bug(
    name="zookeeper-312",
    link="https://github.com/pravega/zookeeper-operator/issues/312",
    pattern="stale",
    broken=_cleans_up("volume", by_name=True),
    fixed=_cleans_up("volume", by_name=False),
    steps=(creates(), deletes, creates()),
    replay="stale:create:configmaps:2:5",
)
ZOOKEEPER_314 = Bug(
    name="zookeeper-314",
    link="https://github.com/pravega/zookeeper-operator/issues/314",
    pattern="stale",
    broken=_scales(by_name=True),
    fixed=_scales(by_name=False),
    steps=(creates(nodes="2"), changes(nodes="1"), changes(nodes="2")),
    replay="stale:create:configmaps:5:3",
)
RABBITMQ_653 = Bug(
    name="rabbitmq-653",
    link="https://github.com/rabbitmq/cluster-operator/issues/653",
    pattern="stale",
    broken=_resizes(live=False),
    fixed=_resizes(live=True),
    steps=(creates(size="10"), changes(size="15")),
    replay="stale:delete:configmaps:1:2",
)
CASSKOP_321 = Bug(
    name="casskop-321",
    link="https://github.com/Orange-OpenSource/casskop/issues/321",
    pattern="stale",
    broken=_replaces_a_budget(live=False),
    fixed=_replaces_a_budget(live=True),
    steps=(creates(most="1"), changes(most="2")),
    replay="stale:delete:configmaps:1:2",
)
RABBITMQ_648 = Bug(
    name="rabbitmq-648",
    link="https://github.com/rabbitmq/cluster-operator/issues/648",
    pattern="stale",
    broken=_cleans_up("set", by_name=True),
    fixed=_cleans_up("set", by_name=False),
    steps=(creates(), deletes, creates()),
    replay="stale:create:configmaps:2:5",
)
INSTACLUSTR_407 = Bug(
    name="instaclustr-407",
    link="https://github.com/instaclustr/cassandra-operator/issues/407",
    pattern="stale",
    broken=_deletes_volumes(live=False),
    fixed=_deletes_volumes(live=True),
    steps=(creates(nodes="1"), changes(nodes="0"), changes(nodes="1")),
    replay="stale:patch:statefulsets.apps:2:21",
    environment=("statefulsets",),
    writes=(SET, POD, CLAIM),
)
YUGABYTE_35 = Bug(
    name="yugabyte-35",
    link="https://github.com/yugabyte/yugabyte-operator/issues/35",
    pattern="stale",
    broken=_keeps_a_secret(own_only=False),
    fixed=_keeps_a_secret(own_only=True),
    steps=(creates(tls="no"), changes(tls="yes")),
    replay="stale:create:configmaps:1:2",
)
K0SMOTRON_1534 = Bug(
    name="k0smotron-1534",
    link="https://github.com/k0sproject/k0smotron/issues/1534",
    pattern="stale",
    broken=_makes_machines(live=False),
    fixed=_makes_machines(live=True),
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
