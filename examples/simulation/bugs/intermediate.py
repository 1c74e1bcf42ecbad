"""Bugs in which a crash between two writes leaves an intermediate state that is never completed."""

from __future__ import annotations

import deltaloop as dl
from examples.simulation.bugs.parts import Bug, Reconcile, changes, create, creates, delete, desired, exists, put, value


async def _resizes_by_its_set(ctx: dl.Context) -> None:
    """Compare the size of the set only. After a crash that follows the delete of the set, the volume is not resized."""
    size, present = await desired(ctx, "size"), await value(ctx, "set", "size")
    if not await exists(ctx, "volume"):
        await create(ctx, "volume", size=size)
    if present is not None and present != size:
        await delete(ctx, "set")
        await put(ctx, "volume", size=size)
        present = None
    if present is None:
        await put(ctx, "set", size=size)


async def _resizes_by_its_volume(ctx: dl.Context) -> None:
    size = await desired(ctx, "size", live=True)  # a stale size must not delete the set again
    if await value(ctx, "volume", "size") != size:
        if await value(ctx, "set", "size") not in (None, size):
            await delete(ctx, "set")
        await put(ctx, "volume", size=size)
    await put(ctx, "set", size=size)


async def _scales_by_two_states(ctx: dl.Context) -> None:
    """Store two states of a new Pod in two writes, and only when it creates the Pod."""
    nodes = int(await desired(ctx, "nodes"))
    for node in range(nodes):
        if not await exists(ctx, f"pod-{node}"):
            await create(ctx, f"pod-{node}")
            await put(ctx, "status", **{f"config-{node}": "in-sync"})
            await put(ctx, "status", **{f"action-{node}": "upscaled"})
    for node in range(nodes, 3):
        if await value(ctx, "status", f"action-{node}") == "upscaled":
            await delete(ctx, f"pod-{node}")
            await put(ctx, "status", **{f"action-{node}": "gone"})


async def _scales_by_its_pods(ctx: dl.Context) -> None:
    nodes = int(await desired(ctx, "nodes"))
    for node in range(nodes):
        if not await exists(ctx, f"pod-{node}"):
            await create(ctx, f"pod-{node}")
        await put(ctx, "status", **{f"config-{node}": "in-sync", f"action-{node}": "upscaled"})
    for node in range(nodes, 3):
        await delete(ctx, f"pod-{node}")
        if await value(ctx, "status", f"action-{node}") is not None:
            await put(ctx, "status", **{f"config-{node}": "in-sync", f"action-{node}": "gone"})


def _decommissions(*, resumes: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Delete a Pod, then store the progress. After a crash between both, the missing Pod is an error."""
        nodes = int(await desired(ctx, "nodes", live=resumes))  # a stale number must not recreate the Pod
        for node in range(nodes):
            if not await exists(ctx, f"pod-{node}"):
                await put(ctx, f"volume-{node}")
                await create(ctx, f"pod-{node}")
        if nodes == 2:
            return
        operation = await value(ctx, "status", "operation")
        present = await exists(ctx, "pod-1")
        if operation is None:
            await put(ctx, "status", operation=(operation := "ongoing"))
        if operation == "ongoing":
            if not present and not resumes:
                raise LookupError("the Pod to decommission does not exist")
            await delete(ctx, "pod-1")
            await put(ctx, "status", operation=(operation := "finalizing"))
        if operation == "finalizing":
            await delete(ctx, "volume-1")
            await put(ctx, "status", operation="done")

    return reconcile


RABBITMQ_782 = Bug(
    name="rabbitmq-782",
    link="https://github.com/rabbitmq/cluster-operator/issues/782",
    pattern="intermediate",
    broken=_resizes_by_its_set,
    fixed=_resizes_by_its_volume,
    steps=(creates(size="10"), changes(size="15")),
    replay="crash-before:update:configmaps:1",
)
NIFIKOP_79 = Bug(
    name="nifikop-79",
    link="https://github.com/konpyutaika/nifikop/issues/79",
    pattern="intermediate",
    broken=_scales_by_two_states,
    fixed=_scales_by_its_pods,
    steps=(creates(nodes="1"), changes(nodes="2"), changes(nodes="1")),
    replay="crash-before:create:configmaps:2",
)
CASSKOP_370 = Bug(
    name="casskop-370",
    link="https://github.com/Orange-OpenSource/casskop/issues/370",
    pattern="intermediate",
    broken=_decommissions(resumes=False),
    fixed=_decommissions(resumes=True),
    steps=(creates(nodes="2"), changes(nodes="1")),
    replay="crash-before:update:configmaps:1",
)
BUGS = (RABBITMQ_782, NIFIKOP_79, CASSKOP_370)
