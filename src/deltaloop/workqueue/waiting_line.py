"""Tasks that wait for something, woken in the order in which they came.

A woken task has a claim and no item: what it was woken for stays where it is until the task really runs. So cancelling
it, even between the wake-up and its next step, loses nothing; the owner of the line wakes the next one then.

All methods belong to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Final, final


@final
class WaitingLine:
    """The tasks that wait, and how many of them were woken but have not run since.

    Attributes:
        asleep: One future for each task that was not woken, in their order; only to be looked at.
        woken: How many were woken and have not run since.
    """

    __slots__ = ("asleep", "woken")

    def __init__(self) -> None:
        """Make an empty line."""
        self.asleep: Final[deque[asyncio.Future[None]]] = deque()
        self.woken: int = 0

    def __len__(self) -> int:
        return len(self.asleep) + self.woken

    def wake(self, claims: int) -> None:
        """See to it that ``claims`` tasks, counting those that were woken before, are awake."""
        while self.woken < claims and self.asleep:
            future = self.asleep.popleft()
            if not future.done():  # one whose task was cancelled just now has nothing to claim
                future.set_result(None)
                self.woken += 1

    def wake_all(self) -> None:
        """Wake all that wait."""
        self.wake(len(self))

    def join(self, loop: asyncio.AbstractEventLoop, *, first: bool = False) -> asyncio.Future[None]:
        """Join the line at its end, or at its head for a task that was there before; await ``turn`` with the result."""
        future: asyncio.Future[None] = loop.create_future()
        if first:
            self.asleep.appendleft(future)
        else:
            self.asleep.append(future)
        return future

    async def turn(self, future: asyncio.Future[None]) -> None:
        """Wait for the turn of a future of ``join``.

        A canceled wait leaves the line as if it had never been there. If it had been woken, its claim is free again:
        the caller has to call ``wake`` in every case.
        """
        try:
            await future
        finally:
            if future.done() and not future.cancelled():
                self.woken -= 1
            else:
                with suppress(ValueError):  # `wake` has taken it out already
                    self.asleep.remove(future)
