"""The clock of the running event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def loop_clock() -> Callable[[], float]:
    """Return a function that returns the time of the running loop.

    It is ``time.monotonic`` where asyncio's own method only calls that.
    """
    loop = asyncio.get_running_loop()
    return time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time
