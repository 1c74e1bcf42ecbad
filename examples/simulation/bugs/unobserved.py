"""A state came and went between two looks; who waits to see it waits for ever.

Published mends are the finalizer of #398, and making the note of #453 where it lacks (proposed in that project's
#569). #410 has none; its mend is ours.
"""

from __future__ import annotations

from typing import Final

import deltaloop as dl
from examples.simulation.bugs.parts import Bug, Reconcile, asked, changes, creates, exists, put
from examples.simulation.bugs.sets import CLAIM, MOST_PODS, POD, SET, drop_claim, ending, pod_name, put_set, ready, size

_VOLUME: Final = "example.com/volume"
_STATE: Final = "example.com/state"


async def _deletes_volumes_of_ending_pods(ctx: dl.Context) -> None:
    """Deletes the claim of a Pod that it sees end; a Pod that has ended meanwhile leaves its claim behind."""
    await put_set(ctx, await asked(ctx, "nodes", live=True))
    for node in range(MOST_PODS):
        if await ending(ctx, node) is not None:
            await drop_claim(ctx, node)


async def _holds_ending_pods(ctx: dl.Context) -> None:
    """Has Pods made with a finalizer, so that none can end before it was seen to."""
    await put_set(ctx, await asked(ctx, "nodes", live=True), finalizers=[_VOLUME])
    for node in range(MOST_PODS):
        pod = await ending(ctx, node, live=True)
        if pod is not None:
            await drop_claim(ctx, node)
            await ctx.client.remove_finalizer(POD, pod, _VOLUME)


def _decommissions(*, looks_back: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Decommissions a node in one run, and has it removed in the next: if the user still wants it then."""
        nodes, present = int(await asked(ctx, "nodes", live=True)), int(await size(ctx) or 0)
        if nodes > present:
            await put_set(ctx, str(nodes))
        elif nodes < present:
            last = pod_name(present - 1)
            pod = await ctx.client.find(POD, last)
            if pod is not None and _STATE not in pod.annotations:
                await ctx.client.patch(POD, last, {"metadata": {"annotations": {_STATE: "decommissioned"}}})
            elif pod is not None:
                await put_set(ctx, str(present - 1))
        elif looks_back:
            for node in range(nodes):
                pod = await ctx.client.find(POD, pod_name(node))
                if pod is not None and pod.deletion_timestamp is None and _STATE in pod.annotations:
                    await ctx.client.delete(POD, pod.name)  # the set makes it anew, and it joins

    return reconcile


def _notes_its_size(*, makes_it_up: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Makes its note when it sees all nodes ready, and takes it to be there when the size is changed."""
        nodes, present = await asked(ctx, "nodes", live=True), await size(ctx)
        if present not in (None, nodes):
            if not makes_it_up and not await exists(ctx, "note"):
                raise LookupError("the node of ZooKeeper that has the size is not there")
            await put(ctx, "note", size=nodes)
        await put_set(ctx, nodes)
        if await ready(ctx) == nodes and not await exists(ctx, "note"):
            await put(ctx, "note", size=nodes)

    return reconcile


INSTACLUSTR_398 = Bug(
    name="instaclustr-398",
    link="https://github.com/instaclustr/cassandra-operator/issues/398",
    pattern="unobserved",
    wrong=_deletes_volumes_of_ending_pods,
    mended=_holds_ending_pods,
    steps=(creates(nodes="2"), changes(nodes="1")),
    replay="delayed-watch:patch:statefulsets.apps:1",
    environment=("statefulsets",),
    writes=(SET, POD, CLAIM),
)
INSTACLUSTR_410 = Bug(
    name="instaclustr-410",
    link="https://github.com/instaclustr/cassandra-operator/issues/410",
    pattern="unobserved",
    wrong=_decommissions(looks_back=False),
    mended=_decommissions(looks_back=True),
    steps=(creates(nodes="3"), changes(nodes="2"), changes(nodes="3")),
    replay="premature:patch:pods:1",
    environment=("statefulsets",),
    writes=(SET, POD),
)
ZOOKEEPER_453 = Bug(
    name="zookeeper-453",
    link="https://github.com/pravega/zookeeper-operator/issues/453",
    pattern="unobserved",
    wrong=_notes_its_size(makes_it_up=False),
    mended=_notes_its_size(makes_it_up=True),
    steps=(creates(nodes="2"), changes(nodes="1")),
    replay="premature:create:statefulsets.apps:1",
    environment=("statefulsets",),
    writes=(SET,),
)
BUGS = (INSTACLUSTR_398, INSTACLUSTR_410, ZOOKEEPER_453)
