"""A server in a thread of its own: most foreign clients block."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deltaloop.apiserver import ApiServer, ServerOptions


@contextmanager
def running(folder: Path) -> Generator[Path]:
    """Run a server and give the path of its kubeconfig."""
    started: Future[tuple[dict[str, Any], asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        async with ApiServer(ServerOptions(controllers=frozenset({"gc", "namespace"}))) as server:
            stop = asyncio.Event()
            started.set_result((server.kubeconfig(), asyncio.get_running_loop(), stop))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name="apiserver", daemon=True)
    thread.start()
    kubeconfig, loop, stop = started.result(timeout=20)
    file = folder / "kubeconfig"
    file.touch(mode=0o600)
    file.write_text(json.dumps(kubeconfig))
    try:
        yield file
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=20)
    assert not thread.is_alive()
