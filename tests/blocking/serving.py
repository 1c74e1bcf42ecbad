"""A server in a thread of its own, and what the tests put onto it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from deltaloop.apiserver import ServerOptions
from deltaloop.blocking import BackgroundLoop
from tests.servers import api_server


@contextmanager
def serving() -> Generator[dict[str, Any]]:
    """Run an embedded server; give its kubeconfig."""
    with BackgroundLoop(name="server") as loop:
        options = ServerOptions(insecure_http=True, controllers=frozenset({"gc", "namespace"}))
        yield loop.enter(api_server(options)).kubeconfig()


def config_map(name: str, *, namespace: str = "default", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"app": name}}, "data": data}


def our_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("deltaloop")}


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread, five seconds at most."""
    pause = threading.Event()
    for _ in range(500):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen")
