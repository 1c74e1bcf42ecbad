"""Every verb under every fault of the network: what is sent again, what is not, and how often the server was asked.

The rules are those of ``core/retry.py``: reading twice does no harm; a write that may have been carried out is never
sent again. The server counts what reached it, so that no claim rests on what the client believes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from deltaloop import kinds, wait
from deltaloop.api.errors import MalformedObjectError
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import RequestTimeoutError, TransportError, WaitTimeoutError
from deltaloop.testing import Corrupt, Cut, Delay, Direction, HalfOpen, Relay, Reset, Stall, Throttle
from tests.client.loopback import serving
from tests.having import having

OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default", "resourceVersion": "7"},
    "data": {"text": "x" * 200},
}
TOKEN_REQUEST: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
LIST = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [OBJECT]}
EVENT = json.dumps({"type": "ADDED", "object": OBJECT}).encode() + b"\n"


@dataclass
class Counting:
    """A server that answers everything well and writes down what reached it as a whole."""

    asked: list[str] = field(default_factory=list[str])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.asked.append(request.method)
        if request.query.get("watch") == "true":
            answer = web.StreamResponse(headers={"Content-Type": "application/json"})
            await answer.prepare(request)
            await answer.write(EVENT)
            await answer.write_eof()
            return answer
        if request.path.endswith("/log"):
            return web.Response(text="line\n" * 100)
        if request.path == "/api":
            return web.json_response({"kind": "APIVersions", "versions": ["v1"]})
        if request.path == "/apis":
            return web.json_response({"kind": "APIGroupList", "groups": []})
        if request.path == "/api/v1":
            names = {
                "name": "configmaps",
                "singularName": "configmap",
                "kind": "ConfigMap",
                "namespaced": True,
                "verbs": ["get", "list", "watch"],
            }
            return web.json_response({"kind": "APIResourceList", "groupVersion": "v1", "resources": [names]})
        is_list = request.method in ("GET", "DELETE") and request.path.endswith("/configmaps")
        return web.json_response(LIST if is_list else OBJECT)


async def watch(client: Client, limit: float | None) -> int:
    async with client.watch(kinds.CONFIG_MAP, timeout=limit) as events:
        return len([event async for event in events])


async def logs(client: Client, limit: float | None) -> int:
    async with client.logs("a", timeout=limit) as stream:
        return len(b"".join([chunk async for chunk in stream.chunks]))


async def each(client: Client, limit: float | None) -> int:
    return len([item async for item in client.iter_list(kinds.CONFIG_MAP, timeout=limit)])


Verb = Callable[[Client, float | None], Awaitable[Any]]
READS: dict[str, Verb] = {
    "get": lambda client, limit: client.get(kinds.CONFIG_MAP, "a", timeout=limit),
    "list": lambda client, limit: client.list(kinds.CONFIG_MAP, timeout=limit),
    "list_all": lambda client, limit: client.list_all(kinds.CONFIG_MAP, timeout=limit),
    "iter_list": each,
    "get_scale": lambda client, limit: client.get_scale(kinds.DEPLOYMENT, "a", timeout=limit),
}
WRITES: dict[str, Verb] = {
    "create": lambda client, limit: client.create(kinds.CONFIG_MAP, OBJECT, timeout=limit),
    "update": lambda client, limit: client.update(kinds.CONFIG_MAP, OBJECT, timeout=limit),
    "update_status": lambda client, limit: client.update_status(kinds.CONFIG_MAP, OBJECT, timeout=limit),
    "patch": lambda client, limit: client.patch(kinds.CONFIG_MAP, "a", {"data": {"b": "c"}}, timeout=limit),
    "apply": lambda client, limit: client.apply(kinds.CONFIG_MAP, OBJECT, timeout=limit),
    "delete": lambda client, limit: client.delete(kinds.CONFIG_MAP, "a", timeout=limit),
    "delete_collection": lambda client, limit: client.delete_collection(
        kinds.CONFIG_MAP, namespace="default", timeout=limit
    ),
    "create_subresource": lambda client, limit: client.create_subresource(
        kinds.SERVICE_ACCOUNT, "a", "token", TOKEN_REQUEST, timeout=limit
    ),
    "evict": lambda client, limit: client.evict("a", timeout=limit),
    "scale": lambda client, limit: client.scale(kinds.DEPLOYMENT, "a", 3, timeout=limit),
}
STREAMS: dict[str, Verb] = {"watch": watch, "logs": logs}
ALL = {**READS, **WRITES, **STREAMS}
METHODS = {
    "create": "POST",
    "update": "PUT",
    "update_status": "PUT",
    "patch": "PATCH",
    "apply": "PATCH",
    "delete": "DELETE",
    "delete_collection": "DELETE",
    "create_subresource": "POST",
    "evict": "POST",
    "scale": "PATCH",
}

reads = pytest.mark.parametrize("verb", list(READS))
writes = pytest.mark.parametrize("verb", list(WRITES))
all_verbs = pytest.mark.parametrize("verb", list(ALL))
cuts = pytest.mark.parametrize("cut", [Cut, Reset])


@dataclass(frozen=True)
class World:
    counting: Counting
    relay: Relay
    client: Client

    async def do(self, verb: str, *, limit: float | None = 30.0) -> Any:
        return await ALL[verb](self.client, limit)


@asynccontextmanager
async def world() -> AsyncGenerator[World, None]:
    counting = Counting()
    async with (
        serving(counting.handle) as address,
        Relay(f"http://{address}") as relay,
        Client(ClientConfig(server=relay.url)) as client,
    ):
        yield World(counting, relay, client)


def now() -> float:
    return asyncio.get_running_loop().time()


# The answer is lost


@cuts
@pytest.mark.parametrize("at", [0, 10, 100])
@reads
async def test_read_with_cut_response_is_retried_after_second(verb: str, at: int, cut: type[Cut | Reset]) -> None:
    async with world() as here:
        here.relay.plan(cut(after_bytes=at) if at else cut(direction=Direction.TO_SERVER, after_bytes=100))
        await here.do(verb)
        assert now() == pytest.approx(1.0)
        assert here.relay.accepted == 2
        assert here.counting.asked in (["GET"], ["GET", "GET"])


@cuts
@pytest.mark.parametrize("at", [1, 10, 100])
@writes
async def test_write_with_cut_response_is_not_retried(verb: str, at: int, cut: type[Cut | Reset]) -> None:
    async with world() as here:
        here.relay.plan(cut(after_bytes=at), connections=None)
        with pytest.raises(TransportError) as caught:
            await here.do(verb)
        assert caught.value.sent, "it may have been carried out, and it was"
        assert not caught.value.refused
        assert here.counting.asked == [METHODS[verb]]
        assert here.relay.accepted == 1
        assert now() == 0.0


@cuts
@pytest.mark.parametrize("verb", list(STREAMS))
async def test_cut_stream_raises_error_without_retry(verb: str, cut: type[Cut | Reset]) -> None:
    async with world() as here:
        here.relay.plan(cut(after_bytes=250), connections=None)
        with pytest.raises(TransportError):
            await here.do(verb)
        assert here.counting.asked == ["GET"]


@reads
async def test_read_is_retried_until_timeout(verb: str) -> None:
    async with world() as here:
        here.relay.plan(Cut(after_bytes=10), connections=None)
        with pytest.raises(TransportError):
            await here.do(verb, limit=5.0)
        assert now() < 5.0
        assert len(here.counting.asked) == 5


# The request is lost on its way


@writes
async def test_write_with_cut_request_is_not_retried(verb: str) -> None:
    async with world() as here:
        here.relay.plan(Cut(direction=Direction.TO_SERVER, after_bytes=60))
        with pytest.raises(TransportError) as caught:
            await here.do(verb)
        assert caught.value.sent, "nobody here can know how far it came"
        assert here.counting.asked == []
        assert here.relay.accepted == 1


# A kept connection is dead


@all_verbs
async def test_closed_kept_connection_is_replaced_without_an_error(verb: str) -> None:
    async with world() as here:
        await here.do(verb)
        before = len(here.counting.asked)
        here.relay.inject(Cut())
        await asyncio.sleep(0.1)  # the end arrives: the client knows before it asks
        began = now()
        await here.do(verb)
        assert now() == began
        assert len(here.counting.asked) == 2 * before


@reads
async def test_read_on_broken_kept_connection_is_retried_immediately(verb: str) -> None:
    async with world() as here:
        await here.do(verb)
        here.relay.inject(Cut(direction=Direction.TO_SERVER, after_bytes=10))
        began = now()
        await here.do(verb)
        assert now() == began, "the dead connection was an old one: nothing to wait for"
        assert here.counting.asked == ["GET", "GET"]


@writes
async def test_write_on_broken_kept_connection_is_not_retried(verb: str) -> None:
    async with world() as here:
        await here.do(verb)
        here.relay.inject(Cut(after_bytes=1))
        with pytest.raises(TransportError) as caught:
            await here.do(verb)
        assert caught.value.sent
        assert here.counting.asked == [METHODS[verb]] * 2


# Nobody is there


@all_verbs
async def test_refused_connection_fails_immediately(verb: str) -> None:
    async with world() as here:
        here.relay.refuse()
        with pytest.raises(TransportError) as caught:
            await here.do(verb)
        assert caught.value.refused
        assert not caught.value.sent
        assert now() == 0.0
        assert here.counting.asked == []


# Silence


@pytest.mark.parametrize("fault", [Stall(), HalfOpen()])
@all_verbs
async def test_silent_server_ends_at_the_timeout_without_retry(verb: str, fault: Stall | HalfOpen) -> None:
    async with world() as here:
        here.relay.plan(fault, connections=None)
        with pytest.raises(RequestTimeoutError) as caught:
            await here.do(verb, limit=7.0)
        assert now() == pytest.approx(7.0)
        assert caught.value.sent
        assert len(here.counting.asked) == (1 if isinstance(fault, Stall) else 0)
        assert here.relay.accepted == 1


@all_verbs
async def test_request_to_stalled_server_times_out(verb: str) -> None:
    async with world() as here:
        here.relay.plan(Stall(direction=Direction.TO_SERVER), connections=None)
        with pytest.raises(RequestTimeoutError):
            await here.do(verb, limit=7.0)
        assert here.counting.asked == []


@all_verbs
async def test_call_after_timeout_succeeds(verb: str) -> None:
    async with world() as here:
        here.relay.plan(HalfOpen())
        with pytest.raises(RequestTimeoutError):
            await here.do(verb, limit=7.0)
        await here.do(verb)
        assert len(here.counting.asked) == 1
        assert here.relay.accepted == 2, "the silent connection is not used again"


@writes
async def test_canceled_write_is_not_retried(verb: str) -> None:
    async with world() as here:
        here.relay.plan(Stall(), connections=1)
        task = asyncio.create_task(here.do(verb))
        await asyncio.sleep(1.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await here.do(verb)
        assert here.counting.asked == [METHODS[verb]] * 2


# Slow, late, broken


@all_verbs
async def test_slow_response_is_not_error(verb: str) -> None:
    async with world() as here:
        here.relay.plan(Delay(seconds=2.0), Delay(seconds=1.0, direction=Direction.TO_SERVER))
        here.relay.plan(Throttle(bytes_per_second=200))
        await here.do(verb)
        assert now() == pytest.approx(3.0)
        assert len(here.counting.asked) == 1


@all_verbs
async def test_throttled_response_is_complete(verb: str) -> None:
    async with world() as here:
        here.relay.plan(Throttle(bytes_per_second=100))
        await here.do(verb)
        assert now() > 3.0
        assert len(here.counting.asked) == 1


@writes
async def test_write_with_corrupt_response_is_not_retried(verb: str) -> None:
    async with world() as here:
        # The status line: no HTTP any more.
        here.relay.plan(Corrupt(after_bytes=0, count=8, mask=0x80), connections=None)
        with pytest.raises(TransportError) as caught:
            await here.do(verb)
        assert caught.value.sent
        assert here.counting.asked == [METHODS[verb]]


@pytest.mark.parametrize("verb", ["get", "create", "update", "update_status", "patch"])
async def test_corrupt_body_raises_error_without_retry(verb: str) -> None:
    async with world() as here:
        await here.do(verb)
        size = here.relay.connections[0].passed(Direction.TO_CLIENT)
        body = len(json.dumps(OBJECT).encode())
        here.relay.inject(Corrupt(after_bytes=size - body, mask=0x80))  # the first byte of the same answer's body
        with pytest.raises(MalformedObjectError):
            await here.do(verb)
        assert len(here.counting.asked) == 2


# Discovery


async def test_discovery_is_retried_after_cut_connection() -> None:
    async with world() as here:
        here.relay.plan(Cut(after_bytes=10))
        found = await here.client.resource("configmaps")
        assert found.kind == "ConfigMap"
        assert set(here.counting.asked) == {"GET"}


async def test_discovery_with_silent_server_times_out() -> None:
    async with world() as here:
        here.relay.plan(Stall(), connections=None)
        with pytest.raises(RequestTimeoutError):
            await here.client.resource("configmaps", timeout=7.0)
        assert now() == pytest.approx(7.0, abs=0.1)


# Waiting


@dataclass
class Appearing(Counting):
    """A server whose lists are empty and whose watches bring the object."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") == "true":
            return await super().handle(request)
        self.asked.append(request.method)
        return web.json_response({**LIST, "items": []})


@cuts
@pytest.mark.parametrize("at", [0, 10, 100])
async def test_wait_continues_after_cut_connections(at: int, cut: type[Cut | Reset]) -> None:
    appearing = Appearing()
    async with (
        serving(appearing.handle) as address,
        Relay(f"http://{address}") as relay,
        Client(ClientConfig(server=relay.url)) as client,
    ):
        relay.plan(cut(direction=Direction.TO_CLIENT, after_bytes=at), connections=3)
        found = await client.wait_for(kinds.CONFIG_MAP, "a", wait.created(), namespace="default", timeout=60.0)
        assert found is not None
        assert found.name == "a"
        assert set(appearing.asked) == {"GET"}
        assert 1.0 <= now() < 30.0
        assert len(appearing.asked) <= 8


async def test_wait_on_silent_server_times_out_with_its_condition() -> None:
    async with world() as here:
        here.relay.plan(Stall(), connections=None)
        with pytest.raises(
            WaitTimeoutError, check=having(condition="creation", last_seen="the server has not responded yet")
        ):
            await here.client.wait_for(kinds.CONFIG_MAP, "a", wait.created(), namespace="default", timeout=7.0)
        assert now() == pytest.approx(7.0, abs=0.1)
