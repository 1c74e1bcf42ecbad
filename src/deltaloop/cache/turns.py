"""Run long work on the event loop in small steps, so that lease renewals and health checks are not blocked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator


async def in_turns(work: Iterator[None]) -> None:
    """Run all steps of ``work``, and let other tasks run between them. A cancel stops after the current step."""
    for _ in work:
        await asyncio.sleep(0)
