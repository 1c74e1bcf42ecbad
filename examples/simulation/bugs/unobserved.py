"""A state came and went between two looks; who waits to see it waits for ever.

Published mends are the finalizer of #398, and making the note of #453 where it lacks (proposed in that project's
#569). #410 has none; its mend is ours.
"""

from __future__ import annotations

from typing import Final

import deltaloop as dl
from examples.simulation.bugs.outside import MOST_PODS, outside
from examples.simulation.bugs.parts import (
    KIND,
    Bug,
    Reconcile,
    asked,
    changes,
    creates,
    drop,
    exists,
    note,
    put,
    value,
)

_VOLUME: Final = "example.com/volume"


async def _deletes_volumes_of_ending_pods(ctx: dl.Context) -> None:
    """Deletes the volume of a Pod that it sees end; a Pod that has ended meanwhile leaves its volume behind."""
    await put(ctx, "set", size=await asked(ctx, "nodes", live=True), volumes="yes")
    for node in range(MOST_PODS):
        pod = await ctx.client.find(KIND, f"pod-{node}")
        if pod is not None and pod.deletion_timestamp is not None:
            await drop(ctx, f"volume-{node}")


async def _holds_ending_pods(ctx: dl.Context) -> None:
    """Has Pods made with a finalizer, so that none can end before it was seen to."""
    await put(ctx, "set", size=await asked(ctx, "nodes", live=True), volumes="yes", finalizers=_VOLUME)
    for node in range(MOST_PODS):
        pod = await ctx.client.live.find(KIND, f"pod-{node}")
        if pod is not None and pod.deletion_timestamp is not None:
            await drop(ctx, f"volume-{node}", by_name=True)
            await ctx.client.remove_finalizer(KIND, pod, _VOLUME)


def _decommissions(*, looks_back: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Decommissions a node in one run, and has it removed in the next: if the user still wants it then."""
        nodes, size = int(await asked(ctx, "nodes", live=True)), int(await value(ctx, "set", "size") or 0)
        if nodes > size:
            await put(ctx, "set", size=str(nodes))
        elif nodes < size:
            last = f"pod-{size - 1}"
            if await value(ctx, last, "state") != "decommissioned":
                await note(ctx, last, state="decommissioned")
            else:
                await put(ctx, "set", size=str(size - 1))
        elif looks_back:
            for node in range(nodes):
                pod = await ctx.client.find(KIND, f"pod-{node}")
                if pod is None or pod.deletion_timestamp is not None:
                    continue
                if pod.get("data", {}).get("state") == "decommissioned":
                    await drop(ctx, pod.name)  # Kubernetes makes it anew, and it joins

    return reconcile


def _notes_its_size(*, makes_it_up: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Makes its note when it sees all nodes ready, and takes it to be there when the size is changed."""
        nodes, size = await asked(ctx, "nodes", live=True), await value(ctx, "set", "size")
        if size not in (None, nodes):
            if not makes_it_up and not await exists(ctx, "note"):
                raise LookupError("the node of ZooKeeper that has the size is not there")
            await put(ctx, "note", size=nodes)
        await put(ctx, "set", size=nodes, **({"ready": "0"} if size is None else {}))
        if await value(ctx, "set", "ready") == nodes and not await exists(ctx, "note"):
            await put(ctx, "note", size=nodes)

    return reconcile


INSTACLUSTR_398 = Bug(
    name="instaclustr-398",
    link="https://github.com/instaclustr/cassandra-operator/issues/398",
    pattern="unobserved",
    wrong=_deletes_volumes_of_ending_pods,
    mended=_holds_ending_pods,
    steps=(creates(nodes="2"), changes(nodes="1")),
    replay="held:update:configmaps:1",
    outside=outside,
)
INSTACLUSTR_410 = Bug(
    name="instaclustr-410",
    link="https://github.com/instaclustr/cassandra-operator/issues/410",
    pattern="unobserved",
    wrong=_decommissions(looks_back=False),
    mended=_decommissions(looks_back=True),
    steps=(creates(nodes="3"), changes(nodes="2"), changes(nodes="3")),
    replay="hurried:patch:configmaps:1",
    outside=outside,
)
ZOOKEEPER_453 = Bug(
    name="zookeeper-453",
    link="https://github.com/pravega/zookeeper-operator/issues/453",
    pattern="unobserved",
    wrong=_notes_its_size(makes_it_up=False),
    mended=_notes_its_size(makes_it_up=True),
    steps=(creates(nodes="2"), changes(nodes="1")),
    replay="hurried:create:configmaps:1",
    outside=outside,
)
BUGS = (INSTACLUSTR_398, INSTACLUSTR_410, ZOOKEEPER_453)
