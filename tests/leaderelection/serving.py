"""An embedded API server on a thread of its own, so that a test may block its own event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from deltaloop.apiserver import ServerOptions
from tests.servers import api_server


@contextmanager
def serving() -> Generator[dict[str, Any]]:
    """Run a server without TLS; gives its kubeconfig."""
    ready = threading.Event()
    kubeconfig: dict[str, Any] = {}
    loop: asyncio.AbstractEventLoop | None = None
    stop: asyncio.Event | None = None

    async def serve() -> None:
        nonlocal loop, stop
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        async with api_server(ServerOptions(insecure_http=True)) as server:
            kubeconfig.update(server.kubeconfig())
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="embedded-server")
    thread.start()
    try:
        assert ready.wait(10)
        yield kubeconfig
    finally:
        assert loop is not None
        assert stop is not None
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
