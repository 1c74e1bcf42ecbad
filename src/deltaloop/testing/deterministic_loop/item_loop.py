"""Event loop of one async test, for its fixtures and its body, in virtual or real time."""

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
    """Error of a test that left tasks running."""


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
    def __init__(self, *, real: bool, in_memory: bool = False) -> None:
        """Make a loop on the real clock or in virtual time; ``in_memory`` applies only to virtual time."""

        def make_loop() -> asyncio.AbstractEventLoop:
            return ProcessLoop() if real else VirtualLoop(network=MemoryNetwork() if in_memory else None)

        self.real = real
        self._runner = asyncio.Runner(loop_factory=make_loop)
        self._guests: list[_Guest] = []

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter an async context manager until ``leave`` or the end of the test."""
        found: T = self.run(self._enter(manager))
        return found

    def leave(self, manager: AbstractAsyncContextManager[Any]) -> None:
        guests = [guest for guest in self._guests if guest.manager is manager]
        if guests:
            self.run(self._leave(guests))

    def run_test(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run the body of the test, exit the fixtures' context managers, and reject leftover tasks."""
        self.run(self._test(make))

    def close(self) -> None:
        """Exit the remaining context managers, cancel remaining tasks, and close the loop; can be called repeatedly."""
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
        for _ in range(3):  # lets tasks end that were canceled just now
            await asyncio.sleep(0)
        leftover = sorted(repr(task.get_coro()) for task in asyncio.all_tasks() if task is not current)
        if leftover:
            raise LeftoverTasksError(f"the test ended with {len(leftover)} running task(s): {'; '.join(leftover)}")

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
