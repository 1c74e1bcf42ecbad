"""Long work on the event loop, in turns.

A list of 100 000 objects is a second of work for a cache. Done at once, nothing else runs for a second: no renewal of
a lease, no health check, no other informer. Such work is written as a generator that yields every so many objects; the
driver lets other tasks run then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator


async def in_turns(work: Iterator[None]) -> None:
    """Do all of ``work``; others run whenever it yields. Cancelled, the rest is not done."""
    for _ in work:
        await asyncio.sleep(0)
