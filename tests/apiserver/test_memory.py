"""The memory that one client can make the server hold."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import pytest

from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.wire.incoming import FREE, Incoming
from deltaloop.testing import eventually
from tests.apiserver.serving import CONFIG_MAPS, config_map, serving

_PIECE = 64 * 1024
_SENT = 2 * 2**20


def _holds(incoming: Incoming, size: int) -> bool:
    return incoming.held == size


async def _unfinished(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a body of which the last part never comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {_SENT + 1}\r\n\r\n".encode())
    for _ in range(_SENT // _PIECE):
        writer.write(b" " * _PIECE)
        await writer.drain()
    return reader, writer


# On the real clock: bodies are on their way through the kernel, and virtual time would not wait for them.
@pytest.mark.real_time
async def test_unfinished_bodies_share_a_bound_and_do_not_delay_small_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = 3
    incoming = Incoming(most=most * (_SENT - FREE) + 1)
    monkeypatch.setattr("deltaloop.apiserver.server.Incoming", lambda: incoming)
    async with serving() as on:
        port = int(on.server.url.rpartition(":")[2])
        opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for number in range(most + 2):
            opened.append(await _unfinished(port))
            await eventually(partial(_holds, incoming, min(number + 1, most) * (_SENT - FREE)))
        refusals = [await asyncio.wait_for(reader.readline(), 10) for reader, _ in opened[most:]]
        assert {line.split()[1] for line in refusals} == {b"429"}
        assert (await on.call.post(CONFIG_MAPS, config_map("small"))).status == 201
        large = json.dumps(config_map("large")).encode() + b" " * _SENT
        refused = await on.call.call("POST", CONFIG_MAPS, large, Content_Type="application/json")
        assert refused.refuses(429, "TooManyRequests")
        assert refused.headers["Retry-After"] == "1"
        for _, writer in opened:
            writer.transport.abort()
        await eventually(partial(_holds, incoming, 0))
        assert (await on.call.call("POST", CONFIG_MAPS, large, Content_Type="application/json")).status == 201


async def test_incomplete_body_times_out() -> None:
    async with serving() as on:
        port = int(on.server.url.rpartition(":")[2])
        reader, writer = await _unfinished(port)
        answer = await reader.readuntil(b'"code":504}\n')
        assert answer.startswith(b"HTTP/1.1 504")
        writer.transport.abort()


async def test_full_store_accepts_only_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as on:
        made = await on.call.created(CONFIG_MAPS, config_map("a"))
        with monkeypatch.context() as full:
            full.setattr("deltaloop.apiserver.core.writes.storing.MAX_STORE", 0)
            for answered in (
                await on.call.post(CONFIG_MAPS, config_map("b")),
                await on.call.put(f"{CONFIG_MAPS}/a", {**made.json, "data": {"a": "b"}}),
            ):
                assert answered.refuses(500, "") == "etcdserver: mvcc: database space exceeded"
            assert (await on.call.delete(f"{CONFIG_MAPS}/a")).status == 200
        assert (await on.call.post(CONFIG_MAPS, config_map("b"))).status == 201


def test_store_size_follows_its_objects() -> None:
    store = RevisionStore()
    for name in ("a", "b"):
        store.create("configmaps", name, config_map(name))
    store.update("configmaps", "a", config_map("a", {"x": "y" * 100}))
    store.delete("configmaps", "b")
    (left,) = store.list("configmaps").items
    assert store.size == len(left.raw)
    other = RevisionStore()
    other.begin_with(store.state())
    assert other.size == store.size
