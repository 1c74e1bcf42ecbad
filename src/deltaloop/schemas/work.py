"""Accounts that limit the work of one request: steps, bytes of results and the size of objects.

Engines charge the account of the current thread before they compute, because the public cost of CEL does not include
all work. A step takes about 100 ns. Without an account, only single evaluations are limited.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, final

from deltaloop._internal.root_error import DeltaloopError

MOST_STEPS: Final = 50_000_000
"""Steps of one request, or of one evaluation outside of requests. This is a few seconds."""
MOST_BYTES: Final = 128 * 1024 * 1024
"""Bytes of all results of a request or an evaluation, more than the public cost allows."""
MOST_GROWN: Final = 3 * 1024 * 1024
"""Largest size of an object in bytes. Stored objects have at most half of it."""
_BYTES_OF_ONE_STEP: Final = 64
_UNLIMITED: Final = 1 << 62
_STEPS_BETWEEN_PAUSES: Final = 10_000


class WorkLimitError(Exception):
    def __init__(self) -> None:
        super().__init__("the work needs more computing or memory than one request may use")


class LongWorkError(Exception):
    """The work is too long for the event loop, so its driver repeats it in a thread."""

    def __init__(self) -> None:
        super().__init__("the work is too long for the event loop")


@final
class GrowthError(DeltaloopError):
    def __init__(self, size: int) -> None:
        super().__init__(f"an object must not grow beyond {CURRENT.account.growth} bytes, got {size} or more")
        self.size = size


@final
class Account:
    """Budget of work."""

    __slots__ = ("_error", "_pause", "growth", "is_shared", "mark", "room", "steps")

    def __init__(
        self,
        steps: int = MOST_STEPS,
        room: int = MOST_BYTES,
        *,
        error: type[Exception] = WorkLimitError,
        growth: int = MOST_GROWN,
        pause: Callable[[], None] | None = None,
    ) -> None:
        self.steps: int = steps
        self.room: int = room
        self.growth: int = growth
        self.is_shared: bool = steps < _UNLIMITED
        self._error: type[Exception] = error
        self._pause = pause
        self.mark: int = 0 if pause is None else max(steps - _STEPS_BETWEEN_PAUSES, 0)

    def charge(self, steps: int) -> None:
        """Charge steps. An empty account raises ``WorkLimitError``, or ``LongWorkError`` on an event loop."""
        self.steps -= steps
        if self.steps < self.mark:
            self.reached()

    def reached(self) -> None:
        if self.steps < 0:
            raise self._error
        if self._pause is not None:
            self.mark = max(self.steps - _STEPS_BETWEEN_PAUSES, 0)
            self._pause()

    def renewed(self) -> tuple[int, int]:
        """Give an evaluation a full account, and return the steps and the room to restore afterwards."""
        before = self.steps, self.room
        self.steps, self.room = MOST_STEPS, MOST_BYTES
        return before

    def build(self, size: int) -> None:
        """Charge the bytes of a result, and the steps to build it."""
        self.room -= size
        if self.room < 0:
            raise WorkLimitError
        self.charge(size // _BYTES_OF_ONE_STEP)


class _Current(threading.local):
    def __init__(self) -> None:
        super().__init__()
        self.account: Account = Account(_UNLIMITED, _UNLIMITED)


CURRENT: Final = _Current()


def charge(steps: int) -> None:
    account = CURRENT.account
    account.steps -= steps
    if account.steps < account.mark:
        account.reached()


def build(size: int) -> None:
    """Charge the bytes of a result to the account of the current thread, and the steps to build it."""
    CURRENT.account.build(size)


def check_growth(size: int) -> None:
    """Reject a size in bytes that exceeds the account of the current thread by GrowthError."""
    if size > CURRENT.account.growth:
        raise GrowthError(size)


@contextmanager
def unbounded_growth() -> Generator[None]:
    """Allow objects to grow to ``MOST_GROWN`` inside the block, because the work cannot be repeated."""
    account = CURRENT.account
    before, account.growth = account.growth, MOST_GROWN
    try:
        yield
    finally:
        account.growth = before


@contextmanager
def limited(to: Account) -> Generator[None]:
    """Charge the work of the current thread to an account inside the block, which must not wait."""
    before, CURRENT.account = CURRENT.account, to
    try:
        yield
    finally:
        CURRENT.account = before
