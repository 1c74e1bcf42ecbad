"""``--processes M``: a supervisor in this process, and members in processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import deltaloop as dl
from deltaloop.testing import eventually
from tests.client.loopback import free_port

PROGRAM = """
import asyncio, os
import deltaloop as dl

@dl.controller("v1/ConfigMap", name="maps", writes=[dl.Permission("v1/ConfigMap", verbs=("patch",))])
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    found = await ctx.client.find("v1/ConfigMap", request.name) if request.name == "a" else None
    if found is not None and found["data"]["by"] != str(os.getpid()):
        await ctx.client.patch("v1/ConfigMap", "a", {"data": {"by": str(os.getpid())}})

if __name__ == "__main__":
    asyncio.run(dl.run(reconcile, options=dl.RunOptions(processes=2, embedded=True, **OPTIONS)))
"""
NAMESPACES = [f"team-{place}" for place in range(8)]
PATIENCE = 60.0


def do_nothing(request: dl.Request, ctx: dl.Context) -> None:
    """The members reconcile, and not this process."""


@asynccontextmanager
async def running(program: Coroutine[Any, Any, None], config: Path) -> AsyncGenerator[None]:
    task = asyncio.create_task(program)
    try:
        await eventually(config.exists, every=0.02)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.real_time
@pytest.mark.timeout(240)
async def test_killed_member_starts_again_and_one_address_serves_pages_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timing: dict[str, Any] = {"lease_duration": 2.0, "renew_deadline": 1.3, "retry_period": 0.4}
    program, config = tmp_path / "maps.py", tmp_path / "config"
    program.write_text(PROGRAM.replace("OPTIONS", repr(timing)))
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, str(program)])  # of the members
    health, metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
    options = dl.RunOptions(
        processes=2,
        embedded=True,
        write_kubeconfig=config,
        health_probe_bind_address=health,
        metrics_bind_address=metrics,
        **timing,
    )
    reconcile = dl.controller("v1/ConfigMap", name="maps")(do_nothing)
    async with (
        running(dl.run(reconcile, options=options), config),
        dl.connect(kubeconfig=config) as client,
        aiohttp.ClientSession() as session,
    ):

        async def page(url: str) -> str:
            async with session.get(f"http://{url}") as answer:
                return await answer.text() if answer.status == 200 else ""

        async def writers() -> dict[str, int]:
            """Return the process that wrote the object of each namespace, when there are two."""
            found = [each for each in await client.list("v1/ConfigMap") if each.name == "a"]
            by = {each.namespace: int(each["data"]["by"]) for each in found}
            assert all(by.values())
            assert len(set(by.values())) == 2
            return by

        async def others(killed: int) -> dict[str, int]:
            by = await writers()
            assert killed not in by.values()
            return by

        await eventually(lambda: page(f"{health}/readyz"), within=PATIENCE, every=0.2)
        for namespace in NAMESPACES:
            await client.create(dl.kinds.NAMESPACE, {"metadata": {"name": namespace}})
            await client.create(
                "v1/ConfigMap", {"metadata": {"name": "a", "namespace": namespace}, "data": {"by": "0"}}
            )
        before = await eventually(writers, within=PATIENCE, every=0.2)
        killed = before[NAMESPACES[0]]
        os.kill(killed, signal.SIGKILL)
        after = await eventually(lambda: others(killed), within=PATIENCE, every=0.2)
        assert len({*before.values(), *after.values()}) == 3
        checks = await eventually(lambda: page(f"{health}/readyz?verbose"), within=PATIENCE, every=0.2)
        assert {"[+]process-0 ok", "[+]process-1 ok"} <= {*checks.splitlines()}
        samples = (await page(f"{metrics}/metrics")).splitlines()
        ranges = [each for each in samples if each.startswith("deltaloop_shard_ranges{")]
        assert [re.findall(r'process="(.)"', each) for each in ranges] == [["0"], ["1"]]
        assert all(float(each.split()[-1]) > 0 for each in ranges)
        for namespace in NAMESPACES:
            explained = json.loads(await page(f"{health}/explain?kind=v1/ConfigMap&namespace={namespace}&name=a"))
            assert explained["reconciles"]
            assert explained["shard"]["owner"]
    for pid in {*before.values(), *after.values()}:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
