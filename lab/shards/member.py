"""One member: ``python -m lab.shards.member NAME KUBECONFIG JOURNAL``, which journals its reconciles and ranges."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import deltaloop as dl
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.sharding import ShardMember, ShardOptions
from deltaloop.sharding.core.shard_map import ShardRange

PROGRAM = "lab"
ELECTION = LeaderElectionConfig(lease_duration=5.0, renew_deadline=3.5, retry_period=2.0)
OPTIONS = ShardOptions(name=PROGRAM, namespace="default", election=ELECTION, drain_timeout=4.0)


async def main(name: str, kubeconfig: Path, journal: Path) -> None:
    with journal.open("a", buffering=1) as lines:

        def note(what: str, **fields: Any) -> None:
            lines.write(json.dumps({"at": time.monotonic(), "what": what, "by": name, **fields}) + "\n")

        async with dl.connect(kubeconfig=kubeconfig, namespace="default") as client:
            member = ShardMember(client, OPTIONS, identity=name)
            change = member.share.change

            def changed(owned: Iterable[ShardRange], finishing: Iterable[ShardRange]) -> None:
                before = member.share.owned
                change(owned, finishing)
                if member.share.owned != before:
                    note("owns", ranges=[[f"{a:x}", f"{b:x}"] for a, b in member.share.owned.bounds])

            member.share.change = changed  # type: ignore[method-assign]

            async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
                if request.name != "a":
                    return
                found = await ctx.client.find(dl.kinds.CONFIG_MAP, request.name)
                if found is None or not request.namespace.startswith("team-"):
                    return
                uid = member._member.uid
                note("begin", key=request.key, uid=uid)
                try:
                    await asyncio.sleep(random.random() * 0.03)
                    data = found["data"]
                    if data.get("seen") != data["value"]:
                        patch = {"data": {"seen": data["value"], "by": uid}}
                        await ctx.client.patch(dl.kinds.CONFIG_MAP, request.name, patch)
                finally:
                    note("end", key=request.key, uid=uid)

            declared = dl.controller(
                "v1/ConfigMap", workers=20, writes=[dl.Permission("v1/ConfigMap", verbs=("patch",))], name=PROGRAM
            )(reconcile)
            options = dl.ManagerOptions(preflight=False, drain_timeout=40.0, shutdown_timeout=45.0)
            manager = dl.Manager(client, [declared], shards=member, options=options)
            running = asyncio.create_task(manager.run(handle_signals=True))
            while not running.done():
                held = len(manager.informers[0].indexer) if manager.informers else 0
                size = {"at": time.monotonic(), "held": held, "rss": resident(), "cpu": time.process_time()}
                journal.with_suffix(".size").write_text(json.dumps(size))
                await asyncio.wait([running], timeout=1.0)
            await running


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    dl.configure_logging()
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
