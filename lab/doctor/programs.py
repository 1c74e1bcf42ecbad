"""Programs with faults. The name of an object selects the fault."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import deltaloop as dl
from deltaloop.api.json_values import at, text
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.sharding import ShardMember, ShardOptions


@dl.controller("v1/ConfigMap", name="faulty", workers=4, writes=["v1/ConfigMap"])
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    """Show the fault that the name of the object selects."""
    found = await ctx.client.find("v1/ConfigMap", request.name)
    if found is None:
        return
    match request.name:
        case "dead-slot":
            await asyncio.Event().wait()
        case "back-off":
            raise ConnectionError("the database does not respond")
        case "parked-key":
            raise dl.TerminalError("the specification is not valid")
        case "hot-loop":
            seen = int(text(at(found.to_dict(), "data", "seen")) or "0")
            await ctx.client.patch("v1/ConfigMap", request.name, {"data": {"seen": str(seen + 1)}})
        case "fight" if found["data"].get("owner") != "faulty":
            await ctx.client.patch("v1/ConfigMap", request.name, {"data": {"owner": "faulty"}})
        case "blocked-loop":
            threading.Event().wait(8.0)
        case _:
            pass


async def member(identity: str, port: int) -> None:
    """Run one member of a sharded program."""
    async with dl.connect() as client:
        election = LeaderElectionConfig(lease_duration=5.0, renew_deadline=3.5, retry_period=1.0)
        options = ShardOptions(name="faulty", namespace="shards", election=election)
        shards = ShardMember(client, options, identity=identity)
        health = dl.runtime.BindAddress(port=port)
        manager_options = dl.ManagerOptions(health=health, namespace="shards")
        await dl.Manager(client, [reconcile], shards=shards, options=manager_options).run(handle_signals=True)


if __name__ == "__main__":
    asyncio.run(member(sys.argv[1], int(os.environ["HEALTH_PORT"])))
