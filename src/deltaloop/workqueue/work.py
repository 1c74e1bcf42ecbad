"""One run of one item as a context manager."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Generic, TypeVar, final

import msgspec

from deltaloop.workqueue.core.delaying import check_delay
from deltaloop.workqueue.core.facts import FINISHED, SUCCEEDED, Again, Ending, Finished, Interrupted, ending_of
from deltaloop.workqueue.core.queue import Run

K = TypeVar("K", bound=Hashable)


@final
class Work(msgspec.Struct, Generic[K], eq=False):
    """An item that is being processed.

    ``async with work:`` ends the run whatever happens in the body.

    * The body ends, also by ``continue``, ``break`` or ``return``: the item is done and forgotten (its failures count
      no more), unless ``retry_after`` was called.
    * It raises an exception: a ``RateLimitingQueue`` logs it, adds the item again as its rate limiter says, and
      suppresses it, so that the worker lives. Queues without a limiter let it through.
    * It is cancelled, or interrupted by ``KeyboardInterrupt`` or ``SystemExit``: the item goes back in line with its
      triggers; that is not counted as a failure. The cancellation or interrupt goes on. After a shutdown the item is
      given up, as every add is.

    A plain ``with work:`` does the same, for threads. Work that is taken, never ended and then thrown away is a bug:
    its item would be in work for ever. It gives a ``ResourceWarning``.

    Attributes:
        key: The item, as it was added.
        triggers: Triggers of this run, oldest first: from all adds that it serves, and from failed runs before it.
        triggers_dropped: Number of triggers between the first and the latest ones that are not kept.
        attempts: Number of this attempt: 1, plus the runs of this item that failed since its last success.
    """

    key: K
    triggers: tuple[object, ...]
    triggers_dropped: int
    attempts: int
    _run: Run[K]
    _finish: Callable[[Run[K], Ending], Finished]
    _can_delay: bool
    _again: Again | None = None
    _entered: bool = False
    _left_to_caller: bool = False

    def retry_after(self, delay: float, *, trigger: object | None = None, keep_triggers: bool = True) -> None:
        """Ask for another run ``delay`` seconds after this one, without an error; the last call counts.

        The item's failures are forgotten, as after a success. If the body raises, what it asked for here is void.

        Args:
            delay: Seconds from the end of this run; zero or less means at once.
            trigger: Why the item is to run again; joins the triggers of the later run.
            keep_triggers: Whether the later run gets the triggers of this one, too. Say no for work that repeats itself
                for ever: its first reasons are old by then.

        Raises:
            ValueError: If the delay is not finite.
            TypeError: If the queue cannot delay.
        """
        if not self._can_delay:
            raise TypeError("a plain WorkQueue cannot delay; use a DelayingQueue or a RateLimitingQueue")
        self._again = Again(check_delay(delay), trigger, keep_triggers)

    def __enter__(self) -> Work[K]:
        if self._entered:
            raise RuntimeError(f"the work on {self.key!r} was entered before; each get gives out one run")
        self._entered = True
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        ending = SUCCEEDED if exc is None and self._again is None else ending_of(exc, self._again)
        finished = self._finish(self._run, ending)
        return finished is not FINISHED and finished.suppressed

    async def __aenter__(self) -> Work[K]:
        return self.__enter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return self.__exit__(exc_type, exc, traceback)

    def put_back(self, delay: float = 0.0) -> None:
        """End the run as if it had been cancelled: the item goes back in line with its triggers, uncounted.

        For work that was taken and cannot be started after all. Any thread. Once the run has ended it does nothing.

        Args:
            delay: Seconds until the item is back in line.

        Raises:
            ValueError: If the delay is not finite.
            TypeError: If there is a delay and the queue cannot delay.
        """
        if delay and not self._can_delay:
            raise TypeError("a plain WorkQueue cannot delay; use a DelayingQueue or a RateLimitingQueue")
        self._finish(self._run, Interrupted(check_delay(delay)))

    def leave_to_caller(self) -> None:
        """Say that the run is ended by the queue's ``done``, as after a plain ``get``, so that there is no warning."""
        self._left_to_caller = True

    def __del__(self) -> None:
        run = self._run
        if not run.over and not self._left_to_caller:
            warnings.warn(
                f"the work on {run.item!r} was taken and never ended, so nobody else gets it; use `async with work:`",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )

    def __repr__(self) -> str:
        return f"<Work on {self.key!r}, attempt {self.attempts}, {len(self.triggers)} triggers>"
