"""A look at the running loop's timers, which asyncio does not show."""

from __future__ import annotations

import asyncio
from typing import cast


def live_timers() -> int:
    """Return how many timers of the running loop were not cancelled."""
    handles = cast("list[asyncio.TimerHandle]", vars(asyncio.get_running_loop())["_scheduled"])
    return sum(not handle.cancelled() for handle in handles)
