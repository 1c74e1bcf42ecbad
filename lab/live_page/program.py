"""Program with many objects and a constant rate of reconciles. It prints its URL, and ends with its standard input.

python -m lab.live_page.program PORT OBJECTS RECONCILES_PER_SECOND
"""

from __future__ import annotations

import asyncio
import sys

import deltaloop as dl
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions

PLANTED = "planted-3e7c"
_STEP = 0.05


def manifests(count: int) -> list[Manifest]:
    """Return ConfigMaps and Secrets with planted values."""
    found: list[Manifest] = []
    for number in range(count):
        kind = "Secret" if number % 1000 == 999 else "ConfigMap"
        metadata = {"name": f"object-{number:05d}", "namespace": "default"}
        values = {"stringData" if kind == "Secret" else "data": {"password": PLANTED}}
        found.append(Manifest("objects", number, {"apiVersion": "v1", "kind": kind, "metadata": metadata, **values}))
    return found


async def main(port: int, objects: int, rate: int) -> None:
    """Run until the standard input ends."""
    channel = dl.sources.Channel("storm")

    @dl.controller("v1/ConfigMap", name="maps", sources=[channel], workers=4)
    async def maps(request: dl.Request, ctx: dl.Context) -> None:
        found = await ctx.client.find(dl.kinds.CONFIG_MAP, request.name)
        if found is not None and request.name == "object-00001":
            ctx.recorder.event(found, "Normal", "Reconciled", PLANTED)
        if request.name == "object-00002":
            raise ValueError(PLANTED)
        if request.name == "object-00003":
            raise dl.TerminalError(PLANTED)
        if request.name == "object-00004" and any(trigger.source == "storm" for trigger in ctx.triggers):
            await ctx.client.patch(dl.kinds.CONFIG_MAP, request.name, {"data": {"seen": f"{PLANTED} {ctx.number}"}})

    @dl.controller("v1/Secret", name="secrets")
    async def secrets(request: dl.Request, ctx: dl.Context) -> None:
        if request.name.endswith("999"):
            await asyncio.sleep(3600)

    async with ApiServer(ServerOptions(insecure_http=True)) as server:
        server.load(manifests(objects))
        async with (
            dl.Client(dl.ClientConfig(server=server.url, namespace="default")) as client,
            dl.EventRecorder(client, component="maps") as recorder,
        ):
            options = dl.ManagerOptions(health=dl.runtime.BindAddress(port=port), doctor_actions=True)
            manager = dl.Manager(client, [maps, secrets], recorder=recorder, options=options)
            running = asyncio.create_task(manager.run())
            while not all(check.ok for check in manager.readiness()):  # noqa: ASYNC110 - readiness has no event
                await asyncio.sleep(_STEP)
            print(manager.servers["health"].url, flush=True)
            storm = asyncio.create_task(reconcile(channel, objects, rate))
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
            storm.cancel()
            manager.stop()
            manager.stop()
            await asyncio.wait({running})


async def reconcile(channel: dl.sources.Channel, objects: int, rate: int) -> None:
    """Request reconciles of one object after the other at a constant rate."""
    clock = asyncio.get_running_loop().time
    began, done = clock(), 0
    while True:
        await asyncio.sleep(_STEP)
        while done < (clock() - began) * rate:
            number = done % objects
            done += 1
            if done % rate == 0:
                channel.send("default/object-00001")
                channel.send("default/object-00004")
            if number > 4 and number % 1000 != 999:
                channel.send(f"default/object-{number:05d}")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:4])))
