"""What a later term of leadership finds when an earlier one was lost while everything began."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.client import Client, ClientConfig
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.client.transport.protocol import HttpRequest, HttpResponse, StreamResponse, Transport
from deltaloop.leaderelection import LeaderElector
from deltaloop.runtime import Context, Request, controller
from deltaloop.sources import Channel, Periodic, Source
from tests.runtime.worlds import World, now, until, world

LEASE = "coordination.k8s.io/v1/Lease"
WIDGETS: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


class Gate:
    """A way to the server that holds one request back until it is opened; it counts them, and the open streams."""

    def __init__(self, way: Transport, *, held: int | None = None) -> None:
        self._way = way
        self._held = held
        self.asked: list[str] = []
        self.streams: Counter[str] = Counter()
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def _pass(self, request: HttpRequest) -> None:
        self.asked.append(f"{request.method} {request.path}")
        if len(self.asked) - 1 == self._held:
            self.reached.set()
            await self.open.wait()

    async def request(self, request: HttpRequest) -> HttpResponse:
        await self._pass(request)
        return await self._way.request(request)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        self.streams[request.path] += 1
        try:
            await self._pass(request)
            async with self._way.stream(request) as answer:
                yield answer
        finally:
            self.streams[request.path] -= 1

    async def close(self) -> None:
        await self._way.close()


class Work:
    """A controller of widgets and config maps that looks whether a key is reconciled twice at a time."""

    def __init__(self) -> None:
        self.at_work: Counter[str] = Counter()
        self.most = 0
        self.reconciled: Counter[str] = Counter()
        self.channel = Channel()
        sources: list[Source] = [Periodic(10.0, ["default/tick"]), self.channel]
        self.controller = controller("example.com/v1/Widget", watches=["v1/ConfigMap"], workers=3, sources=sources)(
            self.reconcile
        )

    async def reconcile(self, request: Request, ctx: Context) -> None:
        self.at_work[request.key] += 1
        self.most = max(self.most, self.at_work[request.key])
        await asyncio.sleep(0.5)
        self.reconciled[request.key] += 1
        self.at_work[request.key] -= 1


async def lose(w: World, elector: LeaderElector) -> None:
    """Give the lease to another one, who keeps it for a second."""
    term = elector.term
    assert term is not None
    held = await w.client.get(LEASE, "test", namespace="default")
    taken = held.edit()
    taken["spec"].update(holderIdentity="thief", leaseDurationSeconds=1)
    await w.client.update(LEASE, taken)
    await term.lost.wait()


async def begin_and_lose(w: World, *, warm_standbys: bool, held: int | None) -> list[str]:
    """Run a manager that loses its lease while one request of its start is held back; return what it asked for."""
    work, config = Work(), ClientConfig(server=w.server.url, namespace="default")
    gate = Gate(HttpTransport(config), held=held)
    async with Client(config, transport=gate) as client, w.another_client() as own:
        elector = w.elector(own, f"held {held}, warm {warm_standbys}")
        manager = w.manager(work.controller, client=client, elector=elector, warm_standbys=warm_standbys)
        task = asyncio.create_task(manager.run())
        if held is not None:
            await until(gate.reached.is_set)
            assert elector.is_leader is not warm_standbys  # a warm standby leads when its caches are full
            if elector.is_leader:
                await lose(w, elector)
            gate.open.set()
        await until(lambda: elector.is_leader and all(check.ok for check in manager.readiness()))
        asked = gate.asked.copy()
        await lose(w, elector)
        await until(lambda: elector.is_leader)
        begun_at = now()
        work.reconciled.clear()
        work.channel.send("default/sent")
        await w.client.patch(kinds.CONFIG_MAP, "a", {"data": {"at": str(begun_at)}}, namespace="default")
        await asyncio.sleep(10.0)
        assert [loop.controller for loop in manager.loops] == [work.controller]
        assert len(manager._informers) == 2
        assert sorted(+gate.streams) == ["/api/v1/configmaps", "/apis/example.com/v1/widgets"]
        assert max(gate.streams.values()) == 1
        assert work.most == 1
        assert work.reconciled == {"default/a": 1, "default/sent": 1, "default/tick": 1}
        manager.stop()
        await task
        return asked


@pytest.mark.parametrize("warm_standbys", [False, True], ids=["cold", "warm"])
async def test_loss_of_lease_at_any_request_of_start_leaves_one_set_of_parts(
    warm_standbys: bool,
) -> None:
    async with world() as w:
        await w.client.create(kinds.CUSTOM_RESOURCE_DEFINITION, WIDGETS)
        await w.put("a")
        asked = await begin_and_lose(w, warm_standbys=warm_standbys, held=None)
        # Discovery, questions about access, lists: each of them may be what a lost lease interrupts.
        assert len({*asked}) >= 4, asked
        for held in {asked.index(request) for request in asked}:
            if not warm_standbys or asked[held].endswith("/configmaps"):  # a warm one has no lease to lose there
                await begin_and_lose(w, warm_standbys=warm_standbys, held=held)
