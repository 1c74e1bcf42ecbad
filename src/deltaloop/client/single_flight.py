"""One run for all who wait: the first one starts it, the others join.

The run is a task of its own. It goes on while anybody waits, and is cancelled, and waited for, with the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    loop: asyncio.AbstractEventLoop
    waiting: int = 0


@final
class SingleFlight(Generic[T]):
    """Shares the runs of one piece of work. Event loops do not share: each has its own run."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], *, name: str) -> None:
        """Share ``work``; ``name`` is the name of its task."""
        self._work = work
        self._name = name
        self._flight: _Flight[T] | None = None

    async def join(self) -> T:
        """Wait for the run that is under way, or start one. Raises what the work raises."""
        loop = asyncio.get_running_loop()
        flight = self._flight
        if flight is None or flight.loop is not loop or flight.task.done():
            flight = self._flight = _Flight(loop.create_task(self._work(), name=self._name), loop)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                if self._flight is flight:
                    self._flight = None
                flight.task.cancel()
                await asyncio.wait([flight.task])
