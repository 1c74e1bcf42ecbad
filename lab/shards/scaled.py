"""Program of the Pods in ``lab.shards.autoscaling``: each change takes 2 s, and reconciles go into a journal."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import deltaloop as dl

NAME = os.environ["POD"]
JOURNAL = Path(os.environ["JOURNAL"]).open("a", buffering=1)  # noqa: SIM115 - until the process ends
SECONDS = 2.0


def note(what: str, key: str) -> None:
    JOURNAL.write(json.dumps({"at": time.monotonic(), "what": what, "by": NAME, "key": key}) + "\n")


@dl.controller("v1/ConfigMap", workers=20, writes=[dl.Permission("v1/ConfigMap", verbs=("patch",))])
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    if not request.namespace.startswith("team-"):
        return
    note("begin", request.key)
    try:
        found = await ctx.client.get(dl.kinds.CONFIG_MAP, request.name)
        data = found["data"]
        if data.get("seen") != data["value"]:
            await asyncio.sleep(SECONDS)
            await ctx.client.patch(dl.kinds.CONFIG_MAP, request.name, {"data": {"seen": data["value"]}})
    finally:
        note("end", request.key)
