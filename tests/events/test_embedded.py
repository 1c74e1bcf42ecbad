"""Both kinds of Events against the embedded server on the real clock, and what kubectl makes of them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client
from deltaloop.events import EventApi, EventRecorder, EventRecorderOptions
from deltaloop.testing.servers.cluster import write_kubeconfig

pytestmark = pytest.mark.real_time

POD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "web", "image": "web"}]},
}
WEB = dl.api.ObjectReference(api_version="v1", kind="Pod", namespace="default", name="web", uid="u1")
KUBECTL = shutil.which("kubectl")


@asynccontextmanager
async def serving() -> AsyncGenerator[tuple[ApiServer, Client]]:
    """Run a server that has the Pod."""
    async with (
        ApiServer(ServerOptions(insecure_http=True)) as server,
        dl.connect(kubeconfig=server.kubeconfig()) as client,
    ):
        await client.create(dl.kinds.POD, POD)
        yield server, client


async def record(client: Client, api: EventApi) -> None:
    """Record one event three times, and a warning with everything."""
    options = EventRecorderOptions(api=api)
    async with EventRecorder(client, component="example.com/web", instance="web-1", options=options) as recorder:
        for _ in range(3):
            recorder.event(WEB, "Normal", "Pulled", f"image is here, says {api}", action="Pull")
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
        recorder.event(WEB, "Warning", "Evicted", f"no room, says {api}", related=node, annotations={"a": "b"})
        assert await recorder.flush(5)
        assert (recorder.api, recorder.dropped) == (api, 0)


async def test_core_events() -> None:
    async with serving() as (_, client):
        await record(client, EventApi.CORE_V1)
        found = await client.list(dl.kinds.EVENT, namespace="default")
    events = {event["reason"]: event for event in found.items}
    assert (events["Pulled"]["count"], events["Pulled"]["involvedObject"]["name"]) == (3, "web")
    assert events["Evicted"].annotations == {"a": "b"}


async def test_events_of_the_newer_api() -> None:
    async with serving() as (_, client):
        await record(client, EventApi.EVENTS_V1)
        found = await client.list(dl.kinds.EVENTS_V1_EVENT, namespace="default")
    events = {event["reason"]: event for event in found.items}
    assert events["Pulled"]["series"]["count"] == 3
    assert (events["Pulled"]["action"], events["Evicted"]["action"]) == ("Pull", "Evicted")
    assert events["Evicted"]["related"]["name"] == "node-1"


async def kubectl(home: Path, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        str(KUBECTL),
        *arguments,
        env={"HOME": str(home), "KUBECONFIG": str(home / "config"), "PATH": os.environ.get("PATH", "")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 20)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output.decode()
    return output.decode()


@pytest.mark.slow
@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on the PATH")
async def test_kubectl_shows_events_of_both_apis(tmp_path: Path) -> None:
    async with serving() as (server, client):
        write_kubeconfig(tmp_path / "config", server.kubeconfig())
        for api in EventApi:
            await record(client, api)
        core, newer, counted = await asyncio.gather(
            kubectl(tmp_path, "get", "events"),
            kubectl(tmp_path, "get", "events.v1.events.k8s.io"),
            kubectl(tmp_path, "events"),
        )
    for shown, api in [(core, EventApi.CORE_V1), (newer, EventApi.EVENTS_V1)]:
        assert re.search(rf"Normal +Pulled +pod/web +image is here, says {api}\n", shown), shown
        assert re.search(rf"Warning +Evicted +pod/web +no room, says {api}\n", shown), shown
    assert re.search(r"\(x3 over .*\) +Normal +Pulled +Pod/web +image is here, says v1\n", counted), counted
