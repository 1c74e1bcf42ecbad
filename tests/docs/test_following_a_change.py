"""A change passes at most 15 modules from the socket to its second write, and the architecture page names them."""

from __future__ import annotations

import asyncio
import re
import sys
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import deltaloop as dl
from deltaloop.testing import Harness

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "internals" / "architecture.md"
SOURCE = ROOT / "src" / "deltaloop"
MOST = 15
DEPLOYMENT, CONFIG_MAP = dl.kinds.DEPLOYMENT, dl.kinds.CONFIG_MAP
ENDS = ("WorkQueue.add", "HttpConnection.ask")  # the event has become a key; a request leaves


@dl.controller(DEPLOYMENT, owns=[CONFIG_MAP], writes=[CONFIG_MAP])
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    deployment = await ctx.client.find(DEPLOYMENT, request.name, namespace=request.namespace)
    if deployment is None:
        return
    replicas = deployment["spec"]["replicas"]

    def change(config_map: dict[str, Any]) -> None:
        dl.set_controller_reference(config_map, deployment, DEPLOYMENT)
        config_map["data"] = {"replicas": str(replicas)}

    await ctx.client.create_or_update(CONFIG_MAP, request.name, change, namespace=request.namespace)
    async with ctx.status(deployment) as status:
        status["replicas"] = replicas


def deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "a"}, "spec": spec}


async def passages_of_a_change(harness: Harness) -> list[list[str]]:
    """Return the files on the stack when the event has become a key, and when each of the two writes leaves."""
    found: list[list[str]] = []

    def note(frame: FrameType | None, event: str, _argument: object) -> None:
        if event != "call" or frame is None or frame.f_code.co_qualname not in ENDS:
            return
        files: list[str] = []
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE):
                files.append(str(path.relative_to(SOURCE)))
            frame = frame.f_back
        found.append([file for file, _ in groupby(reversed(files)) if not file.startswith("testing/")])

    client = harness.client
    manager = dl.Manager(client, [reconcile], options=dl.ManagerOptions(preflight=False, namespace=client.namespace))
    running = asyncio.create_task(manager.run())
    await client.create(DEPLOYMENT, deployment(1))
    await asyncio.sleep(5)
    changing = asyncio.create_task(client.patch(DEPLOYMENT, "a", {"spec": {"replicas": 2}}))
    sys.setprofile(note)
    try:
        await changing
        await asyncio.sleep(5)
    finally:
        sys.setprofile(None)
    manager.stop()
    await running
    return found[1:4]  # without the request of the test


def modules_on_the_page() -> list[str]:
    section = PAGE.read_text().partition("## The path of a change\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. \*\*\[[\w.]+\]\(\.\./src/deltaloop/([\w/]+\.py)\)", section, re.MULTILINE)


async def test_change_passes_few_modules_and_page_names_them(deltaloop_harness: Harness) -> None:
    passages = await passages_of_a_change(deltaloop_harness)
    assert [passage[-1] for passage in passages] == ["workqueue/queue.py", *["client/transport/http_connection.py"] * 2]
    passed = list(dict.fromkeys(file for passage in passages for file in passage))
    assert len(passed) <= MOST
    assert modules_on_the_page() == passed
    assert all(passage.count(file) <= 2 for passage in passages for file in passage), passages
