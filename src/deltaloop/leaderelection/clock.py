"""Clock for leader election."""

from __future__ import annotations

import sys
import time


def boot_time() -> float:
    """Return the seconds since boot, including suspend: a leader must notice that its lease expired meanwhile.

    ``time.monotonic`` stops during suspend on Linux and macOS, so this uses ``CLOCK_BOOTTIME`` and ``CLOCK_MONOTONIC``.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()
