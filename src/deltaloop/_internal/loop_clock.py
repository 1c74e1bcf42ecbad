"""Clock of an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return the function behind ``loop.time``, which is ``time.monotonic`` for asyncio's own loops."""
    return time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time


def loop_clock() -> Callable[[], float]:
    return clock_of(asyncio.get_running_loop())
