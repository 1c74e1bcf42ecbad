"""Event loop of one async test: its fixtures and its body run on it, in virtual or in real time.

Fixtures enter async context managers here before the body runs. Each lives in a task of its own, from its first step to
its last, and all are left, in reverse order, when the body has ended: so servers and clients of a test are on the
test's own loop, and may be in virtual time with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, final

from deltaloop.testing.deterministic_loop.memory_network import MemoryNetwork
from deltaloop.testing.deterministic_loop.processes import ProcessLoop
from deltaloop.testing.deterministic_loop.virtual_loop import VirtualLoop

T = TypeVar("T")


class LeftoverTasksError(AssertionError):
    """A test has left tasks running."""


@final
class _Guest:
    def __init__(self, manager: AbstractAsyncContextManager[Any]) -> None:
        self.manager = manager
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.value: Any = None


@final
class ItemLoop:
    """A loop for one test; close it."""

    def __init__(self, *, real: bool, in_memory: bool = False) -> None:
        """Make a loop, in real or in virtual time.

        Args:
            real: Whether its clock is the real one.
            in_memory: Whether the connections of a loop in virtual time are in memory.
        """

        def make_loop() -> asyncio.AbstractEventLoop:
            return ProcessLoop() if real else VirtualLoop(network=MemoryNetwork() if in_memory else None)

        self.real = real
        self._runner = asyncio.Runner(loop_factory=make_loop)
        self._guests: list[_Guest] = []

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, between fixtures."""
        return self._runner.run(coroutine)

    def enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter an async context manager, and stay in it until ``leave`` or the end of the test.

        Raises:
            Exception: What entering raises.
        """
        found: T = self.run(self._enter(manager))
        return found

    def leave(self, manager: AbstractAsyncContextManager[Any]) -> None:
        """Leave one; if the test has left it already, do nothing."""
        guests = [guest for guest in self._guests if guest.manager is manager]
        if guests:
            self.run(self._leave(guests))

    def run_test(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run the body of the test, leave what fixtures have entered, and look for tasks that still run.

        Raises:
            LeftoverTasksError: If there are any.
        """
        self.run(self._test(make))

    def close(self) -> None:
        """Leave what is still entered, cancel the rest, and close the loop. Repeating it is fine."""
        try:
            if self._guests:
                self.run(self._leave(self._guests))
        finally:
            self._runner.close()

    async def _test(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        try:
            await make()
        finally:
            await self._leave(self._guests)
        current = asyncio.current_task()
        for _ in range(3):  # tasks that were cancelled just now get their turn to end
            await asyncio.sleep(0)
        leftover = sorted(repr(task.get_coro()) for task in asyncio.all_tasks() if task is not current)
        if leftover:
            raise LeftoverTasksError(f"the test left {len(leftover)} task(s) running: {'; '.join(leftover)}")

    async def _enter(self, manager: AbstractAsyncContextManager[Any]) -> Any:
        guest = _Guest(manager)
        guest.task = asyncio.create_task(_stay(guest), name=f"fixture {type(manager).__name__}")
        entered = asyncio.create_task(guest.entered.wait())
        await asyncio.wait([guest.task, entered], return_when=asyncio.FIRST_COMPLETED)
        if guest.task.done():
            entered.cancel()
            guest.task.result()
        self._guests.append(guest)
        return guest.value

    async def _leave(self, guests: list[_Guest]) -> None:
        failures: list[BaseException] = []
        for guest in reversed(list(guests)):
            self._guests.remove(guest)
            guest.leave.set()
            assert guest.task is not None
            failures += [
                result
                for result in await asyncio.gather(guest.task, return_exceptions=True)
                if isinstance(result, BaseException)
            ]
        if failures:
            raise failures[0]


async def _stay(guest: _Guest) -> None:
    async with guest.manager as guest.value:
        guest.entered.set()
        await guest.leave.wait()
