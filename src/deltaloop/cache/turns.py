"""Run long work on the event loop in small steps.

Processing a list of 100 000 objects takes about a second. In one step, this would block lease renewals, health checks
and other informers. So the work is a generator, and other tasks can run at each yield.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator


async def in_turns(work: Iterator[None]) -> None:
    """Run all steps of ``work``, and let other tasks run between them. A cancel stops after the current step."""
    for _ in work:
        await asyncio.sleep(0)
