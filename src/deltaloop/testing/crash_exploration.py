"""Crash exploration: repeat a scenario, and crash the program at a different write each time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext

from deltaloop.apiserver import ServerOptions
from deltaloop.testing.deterministic_loop.virtual_loop import VirtualLoop
from deltaloop.testing.harness import Harness, embedded_harness
from deltaloop.testing.injected_faults.core.program_writes import CrashMoment

_logger = logging.getLogger(__name__)


async def crash_at_every_write(
    scenario: Callable[[Harness], Awaitable[object]],
    *,
    options: ServerOptions | None = None,
    moments: Iterable[CrashMoment] = tuple(CrashMoment),
) -> int:
    """Run a scenario once without a crash, and once for each crash at one of its writes; return the number of runs.

    Each run gets a harness with a separate embedded server. Write the scenario like a test: install, start, act, wait
    until settled, assert. The crashed program restarts after a second, and ``settled`` waits for that.

    Each run is logged at level INFO, so ``pytest --log-cli-level=INFO`` shows the progress.

    Args:
        scenario: Function that receives the harness.
        options: Options of the embedded servers.
        moments: Moments of a crash, before or after the write; by default both.

    Raises:
        Exception: Error of the scenario, with a note that names the crash.
    """
    async with embedded_harness(options) as harness:
        await scenario(harness)
        writes = [str(write) for write in harness.writes]
    worlds, sides, loop = 1, tuple(moments), asyncio.get_running_loop()
    for number, write in enumerate(writes, start=1):
        for moment in sides:
            worlds += 1
            _logger.info(
                "running the scenario with a crash",
                extra={
                    "write": str(write),
                    "moment": moment.value,
                    "run": worlds,
                    "runs": 1 + len(writes) * len(sides),
                },
            )
            note = (
                f"The program crashed at write {number} of {len(writes)}, {moment.value}: {write}. "
                f"Repeat it alone: harness.crash_at_write({number}, CrashMoment.{moment.name})"
            )
            try:
                with loop.noted(note) if isinstance(loop, VirtualLoop) else nullcontext():
                    async with embedded_harness(options) as harness:
                        harness.crash_at_write(number, moment)
                        await scenario(harness)
            except Exception as error:
                error.add_note(note)
                raise
    return worlds
