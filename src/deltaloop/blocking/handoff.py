"""One value on its way from the loop to a thread that waits for it, and never lost in between.

``asyncio.run_coroutine_threadsafe`` loses a result when the waiting side gives up in the moment in which it arrives.
For an item of a queue that would mean: taken, and worked on by nobody. Here exactly one side gets the value. Either the
thread had given up before, and the loop keeps it; or it is handed over, and the thread has it, even if it wanted to
give up.

States: *waiting* → *delivered* (a value or an error) or *abandoned*; the first of both wins, under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, final

T = TypeVar("T")


@final
class Handoff(Generic[T]):
    """One value for one waiting thread."""

    __slots__ = ("_abandoned", "_delivered", "_error", "_lock", "_value")

    def __init__(self) -> None:
        """Make one that waits."""
        self._lock = threading.Lock()
        self._delivered = threading.Event()
        self._abandoned = False
        self._value: list[T] = []
        self._error: BaseException | None = None

    def deliver(self, value: T) -> bool:
        """Hand a value over; return False if nobody wants it any more, so that the caller still owns it."""
        with self._lock:
            if self._abandoned or self._delivered.is_set():
                return False
            self._value.append(value)
            self._delivered.set()
            return True

    def fail(self, error: BaseException) -> bool:
        """Let the waiting thread raise an error; return False if nobody waits any more."""
        with self._lock:
            if self._abandoned or self._delivered.is_set():
                return False
            self._error = error
            self._delivered.set()
            return True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait in the thread; return whether something was delivered."""
        return self._delivered.wait(timeout)

    def abandon(self) -> bool:
        """Give up; return False if it is too late, and the value is there to be taken."""
        with self._lock:
            if self._delivered.is_set():
                return False
            self._abandoned = True
            return True

    def abandon_for(self, unwanted: Callable[[T], object] | None) -> None:
        """Give up; a value that is there already goes to ``unwanted``, and an error is dropped."""
        if not self.abandon() and self._error is None and unwanted is not None:
            unwanted(self._value.pop())

    def take(self) -> T:
        """Return what was delivered, or raise it."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # or the error and this frame would keep each other alive
        return self._value.pop()
