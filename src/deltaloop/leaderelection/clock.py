"""Clock for leader election."""

from __future__ import annotations

import sys
import time


def boot_time() -> float:
    """Return the seconds since boot, including the time during which the machine was suspended.

    A leader must notice that its lease expired while the machine was suspended. ``time.monotonic`` stops during suspend
    on Linux and macOS, so this function uses ``CLOCK_BOOTTIME`` on Linux and ``CLOCK_MONOTONIC`` on macOS. On other
    platforms, it returns ``time.monotonic()``.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()
