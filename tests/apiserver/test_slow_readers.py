"""Clients that list and do not read: their answers wait in one copy, not in the connections' buffers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from deltaloop.apiserver import Manifest
from deltaloop.apiserver.connections import WRITE_PATIENCE
from deltaloop.apiserver.server import ApiServer
from deltaloop.testing import eventually
from tests.apiserver.serving import CONFIG_MAPS, Serving, config_map, serving

_SIZE = 700_000


@asynccontextmanager
async def _stalled(server: ApiServer, paths: list[str]) -> AsyncGenerator[list[socket.socket]]:
    """Ask for each path, and read nothing."""
    address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    loop = asyncio.get_running_loop()
    sockets: list[socket.socket] = []
    try:
        for path in paths:
            made = socket.socket()
            sockets.append(made)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            made.setblocking(False)
            await loop.sock_connect(made, address)
            await loop.sock_sendall(made, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        await asyncio.sleep(0.1)
        yield sockets
    finally:
        for made in sockets:
            made.close()


def _buffered(server: ApiServer) -> list[int]:
    assert server._runner is not None
    assert server._runner.server is not None
    transports = [item.transport for item in server._runner.server.connections]
    return [item.get_write_buffer_size() for item in transports if isinstance(item, asyncio.Transport)]


def _held(server: ApiServer) -> int:
    return server._outgoing.held


def _filled(on: Serving) -> None:
    on.server.load(Manifest("c", number, config_map(f"c{number}", {"a": "x" * _SIZE})) for number in range(8))


# On the real clock: the kernel has megabytes on their way, and virtual time would not wait for them.
@pytest.mark.real_time
async def test_unread_lists_share_one_copy() -> None:
    async with serving() as on:
        _filled(on)
        whole = await on.call.get(CONFIG_MAPS)
        assert whole.headers["Content-Length"] == str(len(whole.body))
        assert len(whole.names) == 8
        async with _stalled(on.server, [CONFIG_MAPS] * 12):
            await eventually(lambda: _held(on.server) == len(whole.body))
            assert max(_buffered(on.server)) < 256 * 1024
            assert (await on.call.get(CONFIG_MAPS)).body == whole.body
        await eventually(lambda: _held(on.server) == 0)


async def test_client_that_reads_nothing_for_a_minute_is_disconnected() -> None:
    async with serving() as on:
        _filled(on)
        async with _stalled(on.server, [CONFIG_MAPS]) as (stalled,):
            await asyncio.sleep(WRITE_PATIENCE - 1)
            assert _held(on.server) > 0
            await asyncio.sleep(2)
            assert _held(on.server) == 0
            received = 0
            with suppress(ConnectionResetError):
                while part := await asyncio.get_running_loop().sock_recv(stalled, 2**20):
                    received += len(part)
            assert received < 7 * _SIZE


@pytest.mark.real_time
async def test_too_many_distinct_lists_get_retry_after() -> None:
    async with serving() as on:
        _filled(on)
        on.server._outgoing._most = 9 * _SIZE
        async with _stalled(on.server, [f"{CONFIG_MAPS}?limit=7"]):
            await eventually(lambda: _held(on.server) > 0)
            refused = await on.call.get(f"{CONFIG_MAPS}?limit=6")
            assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
            assert (await on.call.get(f"{CONFIG_MAPS}?limit=1")).status == 200
            assert (await on.call.get(f"{CONFIG_MAPS}/c1")).status == 200
        await eventually(lambda: _held(on.server) == 0)
        assert (await on.call.get(f"{CONFIG_MAPS}?limit=6")).status == 200
