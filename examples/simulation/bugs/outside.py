"""What Kubernetes does itself: a set has as many Pods as it says, with volumes if it says so; Pods take time to end."""

from __future__ import annotations

import asyncio
from typing import Final

import deltaloop as dl
from examples.simulation.bugs.parts import KIND

MOST_PODS: Final = 3
_RUNS: Final = "example.com/runs"
_TAKES: Final = 1.0


@dl.controller(KIND, name="outside", writes=[KIND])
async def outside(_: dl.Request, ctx: dl.Context) -> None:
    """Make what a set lacks, end what it has too much of, and count the ready ones, if the set has a place for it.

    It asks the server each time: what is tried here is the operator, and not Kubernetes. A volume outlives its Pod, and
    Pods have the finalizer that their set says.
    """
    live = ctx.client.live
    there = {each.name: each for each in await live.list(KIND)}
    if "set" not in there:
        return
    data = there["set"]["data"]
    for node in range(MOST_PODS):
        pod, wanted = there.get(f"pod-{node}"), node < int(data["size"])
        if pod is None and wanted:
            finalizers = [_RUNS, *data.get("finalizers", "").split()]
            await live.create(KIND, {"metadata": {"name": f"pod-{node}", "finalizers": finalizers}})
        elif pod is not None and pod.deletion_timestamp is not None:
            await asyncio.sleep(_TAKES)
            await live.remove_finalizer(KIND, pod, _RUNS)
        elif pod is not None and not wanted:
            await live.delete(KIND, pod.name)
        if wanted and "volumes" in data and f"volume-{node}" not in there:
            await live.create(KIND, {"metadata": {"name": f"volume-{node}"}})
    if data.get("ready", data["size"]) != data["size"]:
        await asyncio.sleep(_TAKES)
        await live.patch(KIND, "set", {"data": {"ready": data["size"]}})
