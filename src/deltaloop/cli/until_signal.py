"""Run a coroutine until it ends or a signal cancels it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import typer

T = TypeVar("T")


def run_until_signal(work: Coroutine[Any, Any, T], *, interrupted: int) -> T:
    """Run a coroutine. SIGINT and SIGTERM cancel it, wait for its cleanup, and exit with the code ``interrupted``."""
    received: list[int] = []

    async def until_signal() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def stop(number: int) -> None:
            received.append(number)
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        return await task

    try:
        return asyncio.run(until_signal())
    except asyncio.CancelledError:
        if not received:
            raise
        raise typer.Exit(interrupted) from None
