"""Servers on the loopback interface, on the loop of the test."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str, None]:
    """Serve every path by one handler; gives ``host:port``."""
    application = web.Application(client_max_size=100_000_000)
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield site.name.partition("://")[2]
    finally:
        await runner.cleanup()
        # Handlers whose client has gone are on their way out; aiohttp does not wait for them.
        while leaving := [task for task in asyncio.all_tasks() if "RequestHandler" in repr(task.get_coro())]:
            await asyncio.wait(leaving)


@asynccontextmanager
async def raw_server(
    script: Callable[[int, asyncio.StreamWriter], Awaitable[None]], *, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[str, None]:
    """Read a request's headers, then let the script write and close; it is told how many requests came before.

    A connection is served until the script closes it.
    """
    served = 0
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while not writer.is_closing():
                    await reader.readuntil(b"\r\n\r\n")
                    served += 1
                    await script(served - 1, writer)
        finally:
            writer.close()
            connections.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await asyncio.sleep(0)  # closing takes a turn
        await server.wait_closed()


def abort(writer: asyncio.StreamWriter) -> None:
    """End a connection by a reset, as a server that dies."""
    transport = writer.transport
    transport.abort()


def free_port() -> int:
    """Return a port where nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
