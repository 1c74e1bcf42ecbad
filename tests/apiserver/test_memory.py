"""The memory that one client can make the server hold."""

from __future__ import annotations

import asyncio
import json

import pytest

from deltaloop.apiserver.core.wire.incoming import FREE, MOST_BYTES
from deltaloop.testing import eventually
from tests.apiserver.serving import CONFIG_MAPS, config_map, serving

_PIECE = 64 * 1024
_SENT = 2 * 2**20


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
async def test_unfinished_bodies_are_bounded_together_and_keep_no_small_write_waiting() -> None:
    most = 3
    async with serving() as on:
        assert on.server._incoming._most == MOST_BYTES
        on.server._incoming._most = most * (_SENT - FREE) + 1
        port = int(on.server.url.rpartition(":")[2])
        opened = [await _unfinished(port) for _ in range(most + 2)]
        refusals = [await asyncio.wait_for(reader.readline(), 10) for reader, _ in opened[most:]]
        assert {line.split()[1] for line in refusals} == {b"429"}
        assert on.server._incoming.held == most * (_SENT - FREE)
        assert (await on.call.post(CONFIG_MAPS, config_map("small"))).status == 201
        large = json.dumps(config_map("large")).encode() + b" " * _SENT
        refused = await on.call.call("POST", CONFIG_MAPS, large, Content_Type="application/json")
        assert refused.refuses(429, "TooManyRequests")
        assert refused.headers["Retry-After"] == "1"
        for _, writer in opened:
            writer.transport.abort()
        await eventually(lambda: not on.server._incoming.held)
        assert (await on.call.call("POST", CONFIG_MAPS, large, Content_Type="application/json")).status == 201


async def test_body_that_does_not_arrive_is_given_up() -> None:
    async with serving() as on:
        port = int(on.server.url.rpartition(":")[2])
        reader, writer = await _unfinished(port)
        answer = await reader.readuntil(b'"code":504}\n')
        assert answer.startswith(b"HTTP/1.1 504")
        writer.transport.abort()
