"""Tasks that wait, woken in order of arrival.

A woken task has a claim but no item: the item stays queued until the task runs, so canceling the task loses nothing.
Use all methods in the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, final

if TYPE_CHECKING:

    class WaitingTasks(Protocol):
        """Tasks that a queue wakes; ``asleep`` is truthy if there are any."""

        asleep: Any

        def wake(self, claims: int) -> None:
            """Wake tasks until ``claims`` tasks are awake, including those woken earlier."""
            ...

        def wake_all(self) -> None:
            """Wake all tasks, because the queue has ended."""
            ...


@final
class WaitingLine:
    """Waiting tasks (``asleep``, in order), and the number of woken tasks that have not run since."""

    __slots__ = ("asleep", "woken")

    def __init__(self) -> None:
        self.asleep: deque[asyncio.Future[None]] = deque()
        self.woken: int = 0

    def __len__(self) -> int:
        return len(self.asleep) + self.woken

    def wake(self, claims: int) -> None:
        """Wake tasks until ``claims`` tasks are awake, including those woken earlier."""
        while self.woken < claims and self.asleep:
            future = self.asleep.popleft()
            if not future.done():  # the task was just canceled and has no claim
                future.set_result(None)
                self.woken += 1

    def wake_all(self) -> None:
        self.wake(len(self))

    def join(self, loop: asyncio.AbstractEventLoop, *, first: bool = False) -> asyncio.Future[None]:
        """Join the line at its end, or at its start for a task that was woken before. Await ``turn`` afterwards."""
        future: asyncio.Future[None] = loop.create_future()
        if first:
            self.asleep.appendleft(future)
        else:
            self.asleep.append(future)
        return future

    async def turn(self, future: asyncio.Future[None]) -> None:
        """Wait for the turn of a future of ``join``; then, also after a cancellation, call ``wake``."""
        try:
            await future
        finally:
            if future.done() and not future.cancelled():
                self.woken -= 1
            else:
                with suppress(ValueError):  # `wake` has already removed it
                    self.asleep.remove(future)
