"""Slots of a program that starts a task for each item, instead of keeping tasks that wait in ``get``."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, final

from deltaloop.workqueue.core.facts import Ending
from deltaloop.workqueue.core.queue import Run
from deltaloop.workqueue.queue import WorkQueue

K = TypeVar("K", bound=Hashable)


@final
class Slots(Generic[K]):
    """Slots for the items of one queue."""

    __slots__ = ("_on_end", "_queue", "_start", "_woken", "asleep", "closed", "paused")

    def __init__(
        self,
        queue: WorkQueue[K],
        number: int,
        *,
        start: Callable[[], object],
        on_end: Callable[[], object],
        paused: bool = False,
    ) -> None:
        """Create free slots, and start tasks for the queued items."""
        self._queue, self._start, self._on_end = queue, start, on_end
        self.closed: bool = False
        self.paused: bool = paused
        self._woken = 0  # started tasks that have not called `take`
        self.asleep: int = number
        queue._serve_slots(self)  # noqa: SLF001 - of the same package

    def wake(self, claims: int) -> None:
        """Start tasks until ``claims`` items are claimed."""
        while self._woken < claims and self.asleep and not self.paused:
            self.asleep -= 1
            self._woken += 1
            self._start()

    def wake_all(self) -> None:
        self._on_end()

    def take(self) -> Run[K] | None:
        """Take an item for a started task; None if there is none or the slots are closed."""
        self._woken -= 1
        if self.closed:
            return None
        run = self._queue._take_claimed()  # noqa: SLF001 - same
        if run is None:
            self.asleep += 1
        return run

    def end(self, run: Run[K], ending: Ending) -> bool:
        """End the run of a task. Return whether the task must call ``take`` again or start a task that does.

        Otherwise the slot is free.
        """
        try:
            self._queue._finish(run, ending)  # noqa: SLF001 - same
        except BaseException:
            if not self.closed:
                self.asleep += 1
                self._queue._serve()  # noqa: SLF001 - same
            raise
        if not self.closed and not self.paused and self._woken < len(self._queue._core.line):  # noqa: SLF001 - same
            self._woken += 1
            return True
        if not self.closed:
            self.asleep += 1
        return False

    def give_back(self, run: Run[K], ending: Ending) -> None:
        """End the run of a task that keeps its slot, if it has not ended before."""
        self._queue._finish(run, ending)  # noqa: SLF001 - same

    def resume(self) -> None:
        """End a pause, and start tasks for the queued items."""
        self.paused = False
        self._queue._serve()  # noqa: SLF001 - same

    def close(self) -> None:
        if not self.closed:
            self.closed, self.asleep = True, 0
            self._queue._serve_slots(None)  # noqa: SLF001 - same
