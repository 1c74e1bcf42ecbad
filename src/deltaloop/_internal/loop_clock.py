"""The clock of an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return a function that returns the time of a loop: ``time.monotonic`` where asyncio's own method only calls that."""
    return time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time


def loop_clock() -> Callable[[], float]:
    """Return a function that returns the time of the running loop."""
    return clock_of(asyncio.get_running_loop())
