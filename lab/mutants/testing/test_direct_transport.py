"""Mistakes seeded into the code, each of which the tests of ``tests.testing.test_direct_transport`` must find."""

from __future__ import annotations

import asyncio
import contextvars

from tests.testing.test_direct_transport import in_memory, served

from deltaloop.apiserver.direct_connections import DirectConnection
from lab.mutants.edited import edited

_NEVER_FULL = edited("NeverFull", DirectConnection, ("self._waiting > _HIGH_WATER", "False"))


def full_after(connection: DirectConnection) -> int:
    """Return how many KiB a handler can write that nobody reads."""
    written = 0
    while not connection.full and written < 1000:
        connection.write(bytes(1024))
        written += 1
    return written


def test_unread_response_blocks_server() -> None:
    async def main() -> None:
        async with served() as (server, _):
            connection = server.door().ask("GET", "/version", [("Host", "127.0.0.1")], None)
            assert 200 < full_after(connection) < 300
            waits = asyncio.ensure_future(connection.room())
            await asyncio.sleep(1)
            assert not waits.done()
            await connection.read()
            await waits
            unbounded = _NEVER_FULL(asyncio.get_running_loop(), contextvars.copy_context())
            assert full_after(unbounded) == 1000, "a seeded bug is seen"

    in_memory(main())
