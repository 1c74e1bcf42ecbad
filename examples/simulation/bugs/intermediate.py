"""A crash between two writes leaves what nobody takes up again."""

from __future__ import annotations

import deltaloop as dl
from examples.simulation.bugs.parts import Bug, Reconcile, asked, changes, creates, drop, exists, make, put, value


async def _resizes_by_its_set(ctx: dl.Context) -> None:
    """Takes the size of the set for that of the volume: once the set is gone, nobody resizes the volume."""
    size, present = await asked(ctx, "size"), await value(ctx, "set", "size")
    if not await exists(ctx, "volume"):
        await make(ctx, "volume", size=size)
    if present is not None and present != size:
        await drop(ctx, "set")
        await put(ctx, "volume", size=size)
        present = None
    if present is None:
        await put(ctx, "set", size=size)


async def _resizes_by_its_volume(ctx: dl.Context) -> None:
    size = await asked(ctx, "size", live=True)  # old news must not delete the set once more
    if await value(ctx, "volume", "size") != size:
        if await value(ctx, "set", "size") not in (None, size):
            await drop(ctx, "set")
        await put(ctx, "volume", size=size)
    await put(ctx, "set", size=size)


async def _scales_by_two_states(ctx: dl.Context) -> None:
    """Notes two things of a new Pod by two writes, and both only when it makes the Pod."""
    wanted = int(await asked(ctx, "nodes"))
    for node in range(wanted):
        if not await exists(ctx, f"pod-{node}"):
            await make(ctx, f"pod-{node}")
            await put(ctx, "status", **{f"config-{node}": "in-sync"})
            await put(ctx, "status", **{f"action-{node}": "upscaled"})
    for node in range(wanted, 3):
        if await value(ctx, "status", f"action-{node}") == "upscaled":
            await drop(ctx, f"pod-{node}")
            await put(ctx, "status", **{f"action-{node}": "gone"})


async def _scales_by_its_pods(ctx: dl.Context) -> None:
    wanted = int(await asked(ctx, "nodes"))
    for node in range(wanted):
        if not await exists(ctx, f"pod-{node}"):
            await make(ctx, f"pod-{node}")
        await put(ctx, "status", **{f"config-{node}": "in-sync", f"action-{node}": "upscaled"})
    for node in range(wanted, 3):
        await drop(ctx, f"pod-{node}")
        if await value(ctx, "status", f"action-{node}") is not None:
            await put(ctx, "status", **{f"config-{node}": "in-sync", f"action-{node}": "gone"})


def _decommissions(*, takes_up: bool) -> Reconcile:
    async def reconcile(ctx: dl.Context) -> None:
        """Deletes a Pod first and notes that afterwards; without the note, a Pod that is gone is an error."""
        wanted = int(await asked(ctx, "nodes", live=takes_up))  # nor may old news bring back what is gone
        for node in range(wanted):
            if not await exists(ctx, f"pod-{node}"):
                await put(ctx, f"volume-{node}")
                await make(ctx, f"pod-{node}")
        if wanted == 2:
            return
        operation = await value(ctx, "status", "operation")
        there = await exists(ctx, "pod-1")
        if operation is None:
            await put(ctx, "status", operation=(operation := "ongoing"))
        if operation == "ongoing":
            if not there and not takes_up:
                raise LookupError("the Pod to decommission is not there")
            await drop(ctx, "pod-1")
            await put(ctx, "status", operation=(operation := "finalizing"))
        if operation == "finalizing":
            await drop(ctx, "volume-1")
            await put(ctx, "status", operation="done")

    return reconcile


RABBITMQ_782 = Bug(
    name="rabbitmq-782",
    link="https://github.com/rabbitmq/cluster-operator/issues/782",
    pattern="intermediate",
    wrong=_resizes_by_its_set,
    mended=_resizes_by_its_volume,
    steps=(creates(size="10"), changes(size="15")),
    replay="crash-before:update:configmaps:1",
)
NIFIKOP_79 = Bug(
    name="nifikop-79",
    link="https://github.com/konpyutaika/nifikop/issues/79",
    pattern="intermediate",
    wrong=_scales_by_two_states,
    mended=_scales_by_its_pods,
    steps=(creates(nodes="1"), changes(nodes="2"), changes(nodes="1")),
    replay="crash-before:create:configmaps:2",
)
CASSKOP_370 = Bug(
    name="casskop-370",
    link="https://github.com/Orange-OpenSource/casskop/issues/370",
    pattern="intermediate",
    wrong=_decommissions(takes_up=False),
    mended=_decommissions(takes_up=True),
    steps=(creates(nodes="2"), changes(nodes="1")),
    replay="crash-before:update:configmaps:1",
)
BUGS = (RABBITMQ_782, NIFIKOP_79, CASSKOP_370)
