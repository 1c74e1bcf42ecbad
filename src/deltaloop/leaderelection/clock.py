"""The clock by which leadership is counted."""

from __future__ import annotations

import sys
import time


def boot_time() -> float:
    """Return seconds since the machine started, with the time that it spent suspended.

    A leader that slept through its lease must know it when it wakes; ``time.monotonic`` stands still during suspend on
    Linux and on macOS. Linux has CLOCK_BOOTTIME; CLOCK_MONOTONIC of macOS runs during sleep. Elsewhere this is
    ``time.monotonic``.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()
