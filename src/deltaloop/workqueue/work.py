"""Context manager for one run of an item."""

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

    ``async with work:`` always ends the run:

    * If the body ends, also with ``continue``, ``break`` or ``return``, the item is done and its failures are
      forgotten, unless ``retry_after`` was called.
    * If the body raises an exception, a ``RateLimitingQueue`` logs it, adds the item again after the limiter's delay
      and suppresses the exception, so that the worker continues. Other queues let the exception propagate.
    * If the body is canceled, or interrupted by ``KeyboardInterrupt`` or ``SystemExit``, the item is queued again with
      its triggers, without counting a failure. The cancellation or interrupt propagates. After a shutdown the item is
      dropped, like an add.

    In threads, use ``with work:``. If you take work and never end it, the item is blocked permanently, and a
    ``ResourceWarning`` is issued.

    Attributes:
        key: Item, as it was added.
        triggers: Triggers of this run, oldest first: from all its adds, and from failed runs before it.
        triggers_dropped: Number of triggers that were not stored.
        attempts: Number of this attempt: 1, plus the failed runs of this item since its last success.
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
        """Request another run ``delay`` seconds after this run, without an error.

        The last call counts.

        The item's failures are forgotten, as after a success. If the body raises, the request is void.

        Args:
            delay: Seconds from the end of this run. Zero or less means immediately.
            trigger: Cause of the later run, in addition to its other triggers.
            keep_triggers: Whether the later run keeps the triggers of this run. Pass False for work that repeats
                forever, because its first triggers become outdated.

        Raises:
            ValueError: If the delay is not finite.
            TypeError: If the queue does not support delays.
        """
        if not self._can_delay:
            raise TypeError("a plain WorkQueue cannot delay items. Use a DelayingQueue or a RateLimitingQueue.")
        self._again = Again(check_delay(delay), trigger, keep_triggers)

    def __enter__(self) -> Work[K]:
        if self._entered:
            raise RuntimeError(f"the work on {self.key!r} was already entered. Call get for each reconcile.")
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
        """End the run as if it had been canceled: queue the item again with its triggers, without counting a failure.

        Use this for work that cannot be started. Thread-safe. After the end of the run it has no effect.

        Args:
            delay: Seconds until the item is queued again.

        Raises:
            ValueError: If the delay is not finite.
            TypeError: If there is a delay and the queue does not support delays.
        """
        if delay and not self._can_delay:
            raise TypeError("a plain WorkQueue cannot delay items. Use a DelayingQueue or a RateLimitingQueue.")
        self._finish(self._run, Interrupted(check_delay(delay)))

    def leave_to_caller(self) -> None:
        """Leave the end of the run to the queue's ``done``, as after a plain ``get``, without a ``ResourceWarning``."""
        self._left_to_caller = True

    def __del__(self) -> None:
        run = self._run
        if not run.over and not self._left_to_caller:
            warnings.warn(
                f"the work on {run.item!r} never ended, so no other worker can take it. Use `async with work:`.",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )

    def __repr__(self) -> str:
        return f"<Work on {self.key!r}, attempt {self.attempts}, {len(self.triggers)} triggers>"
