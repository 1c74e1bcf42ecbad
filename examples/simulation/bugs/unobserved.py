"""Bugs in which a program waits for a state that it missed.

The fixes of #398 (a finalizer) and #453 (creating the missing record, proposed in #569 of that project) are published.
#410 has no published fix.
"""

from __future__ import annotations

from typing import Final

import deltaloop as dl
from examples.simulation.bugs.parts import Bug, Reconcile, changes, creates, desired, exists, put
from examples.simulation.bugs.sets import (
    CLAIM,
    MOST_PODS,
    POD,
    SET,
    delete_claim,
    pod_name,
    put_set,
    ready,
    size,
    terminating,
)

_VOLUME: Final = "example.com/volume"
_STATE: Final = "example.com/state"


async def _deletes_volumes_of_terminating_pods(ctx: dl.Context) -> None:
    """Delete the claim of a terminating Pod. The claim of a Pod that ended unobserved remains."""
    await put_set(ctx, await desired(ctx, "nodes", live=True))
    for node in range(MOST_PODS):
        if await terminating(ctx, node) is not None:
            await delete_claim(ctx, node)


async def _uses_finalizer_of_pods(ctx: dl.Context) -> None:
    """Add a finalizer to the Pods, so that none can end unobserved."""
    await put_set(ctx, await desired(ctx, "nodes", live=True), finalizers=[_VOLUME])
    for node in range(MOST_PODS):
        pod = await terminating(ctx, node, live=True)
        if pod is not None:
            await delete_claim(ctx, node)
            await ctx.client.remove_finalizer(POD, pod, _VOLUME)


def _decommissions(*, rejoins: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Decommission a node in one reconcile and remove it in the next, if the user still wants that."""
        nodes, present = int(await desired(ctx, "nodes", live=True)), int(await size(ctx) or 0)
        if nodes > present:
            await put_set(ctx, str(nodes))
        elif nodes < present:
            last = pod_name(present - 1)
            pod = await ctx.client.find(POD, last)
            if pod is not None and _STATE not in pod.annotations:
                await ctx.client.patch(POD, last, {"metadata": {"annotations": {_STATE: "decommissioned"}}})
            elif pod is not None:
                await put_set(ctx, str(present - 1))
        elif rejoins:
            for node in range(nodes):
                pod = await ctx.client.find(POD, pod_name(node))
                if pod is not None and pod.deletion_timestamp is None and _STATE in pod.annotations:
                    await ctx.client.delete(POD, pod.name)  # the set recreates the Pod, which joins again

    return reconcile


def _records_size(*, creates_record: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Create a record when all nodes are ready, and expect it when the size changes."""
        nodes, present = await desired(ctx, "nodes", live=True), await size(ctx)
        if present not in (None, nodes):
            if not creates_record and not await exists(ctx, "record"):
                raise LookupError("the ZooKeeper node with the size does not exist")
            await put(ctx, "record", size=nodes)
        await put_set(ctx, nodes)
        if await ready(ctx) == nodes and not await exists(ctx, "record"):
            await put(ctx, "record", size=nodes)

    return reconcile


INSTACLUSTR_398 = Bug(
    name="instaclustr-398",
    link="https://github.com/instaclustr/cassandra-operator/issues/398",
    pattern="unobserved",
    broken=_deletes_volumes_of_terminating_pods,
    fixed=_uses_finalizer_of_pods,
    steps=(creates(nodes="2"), changes(nodes="1")),
    replay="delayed-watch:patch:statefulsets.apps:1",
    environment=("statefulsets",),
    writes=(SET, POD, CLAIM),
)
INSTACLUSTR_410 = Bug(
    name="instaclustr-410",
    link="https://github.com/instaclustr/cassandra-operator/issues/410",
    pattern="unobserved",
    broken=_decommissions(rejoins=False),
    fixed=_decommissions(rejoins=True),
    steps=(creates(nodes="3"), changes(nodes="2"), changes(nodes="3")),
    replay="premature:patch:pods:1",
    environment=("statefulsets",),
    writes=(SET, POD),
)
ZOOKEEPER_453 = Bug(
    name="zookeeper-453",
    link="https://github.com/pravega/zookeeper-operator/issues/453",
    pattern="unobserved",
    broken=_records_size(creates_record=False),
    fixed=_records_size(creates_record=True),
    steps=(creates(nodes="2"), changes(nodes="1")),
    replay="premature:create:statefulsets.apps:1",
    environment=("statefulsets",),
    writes=(SET,),
)
BUGS = (INSTACLUSTR_398, INSTACLUSTR_410, ZOOKEEPER_453)
