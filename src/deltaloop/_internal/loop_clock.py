"""The clock of an event loop, without a frame of Python per look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return the function behind ``loop.time``: that of asyncio's own loops is ``time.monotonic``."""
    return time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time
