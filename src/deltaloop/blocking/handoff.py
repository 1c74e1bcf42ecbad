"""Handoff of one value from the loop to a waiting thread, without losing it.

``asyncio.run_coroutine_threadsafe`` loses a result that arrives while the thread stops waiting. Here exactly one side
gets the value: *waiting* → *delivered* (a value or an error) or *abandoned*, decided under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, final

T = TypeVar("T")


@final
class Handoff(Generic[T]):
    __slots__ = ("_abandoned", "_delivered", "_error", "_lock", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._delivered = threading.Event()
        self._abandoned = False
        self._value: list[T] = []
        self._error: BaseException | None = None

    def deliver(self, value: T) -> bool:
        """Deliver a value. If it returns False, the thread has stopped waiting and the caller still owns the value."""
        with self._lock:
            if self._abandoned or self._delivered.is_set():
                return False
            self._value.append(value)
            self._delivered.set()
            return True

    def fail(self, error: BaseException) -> bool:
        """Deliver an error. If it returns False, the thread has stopped waiting."""
        with self._lock:
            if self._abandoned or self._delivered.is_set():
                return False
            self._error = error
            self._delivered.set()
            return True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait in the thread, and return whether a value or an error was delivered."""
        return self._delivered.wait(timeout)

    def abandon(self) -> bool:
        """Stop waiting. If it returns False, the value was delivered before."""
        with self._lock:
            if self._delivered.is_set():
                return False
            self._abandoned = True
            return True

    def abandon_for(self, unwanted: Callable[[T], object] | None) -> None:
        """Stop waiting. A value that was delivered before is passed to ``unwanted``, and an error is dropped."""
        if not self.abandon() and self._error is None and unwanted is not None:
            unwanted(self._value.pop())

    def take(self) -> T:
        """Return the delivered value, or raise the delivered error."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # avoids a reference cycle between the error and this frame
        return self._value.pop()
