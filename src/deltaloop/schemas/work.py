"""Accounts of the work that one request causes: steps, bytes of results and the size of objects, charged in advance.

The public cost of a rule does not count everything that a rule computes, and patterns have no cost at all. Engines
therefore charge the account of the current thread by the sizes of their operands. One step is about 100 ns. Without an
account, the work is not limited, except that each evaluation of an expression has an account for itself.

Defaults, policies and webhooks can make a small object large. The embedded server allows little growth on its event
loop, and repeats a write that needs more in a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, final

from deltaloop._internal.root_error import DeltaloopError

MOST_STEPS: Final = 50_000_000
"""Steps of one request, or of one evaluation outside of requests: some seconds."""
MOST_BYTES: Final = 128 * 1024 * 1024
"""Bytes of the results that one of these may build: the public cost does not permit so much text."""
MOST_GROWN: Final = 3 * 1024 * 1024
"""Bytes that one object may grow to. An object that is stored has at most half of them."""
_BYTES_OF_ONE_STEP: Final = 64
_UNLIMITED: Final = 1 << 62
_STEPS_BETWEEN_PAUSES: Final = 10_000


class WorkLimitError(Exception):
    """The work ended because its account is empty."""

    def __init__(self) -> None:
        super().__init__("the work needs more computing or memory than one request may use")


class LongWorkError(Exception):
    """The work is too long for the event loop; its driver begins it again in a thread."""

    def __init__(self) -> None:
        super().__init__("the work is too long for the event loop")


@final
class GrowthError(DeltaloopError):
    """An object would grow beyond the bound.

    Attributes:
        size: Bytes that it would have at least.
    """

    def __init__(self, size: int) -> None:
        super().__init__(f"an object must not grow beyond {CURRENT.account.growth} bytes, got {size} or more")
        self.size = size


@final
class Account:
    """The work that may still be done.

    Attributes:
        steps: Steps that are left.
        room: Bytes that are left.
        growth: Bytes that one object may grow to.
        mark: Steps that are left when the account is empty, or the work is to pause.
        is_shared: Whether all evaluations of a request use it; others get a full one each.
    """

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
        """Open an account.

        Args:
            steps: Steps of computing.
            room: Bytes of all results.
            error: Raised when the account is empty.
            growth: Bytes that one object may grow to.
            pause: Called from time to time during long work, so that other threads are served sooner.
        """
        self.steps: int = steps
        self.room: int = room
        self.growth: int = growth
        self.is_shared: bool = steps < _UNLIMITED
        self._error: type[Exception] = error
        self._pause = pause
        self.mark: int = 0 if pause is None else max(steps - _STEPS_BETWEEN_PAUSES, 0)

    def charge(self, steps: int) -> None:
        """Take steps from the account.

        Raises:
            WorkLimitError: If there are not so many; ``LongWorkError`` on an event loop.
        """
        self.steps -= steps
        if self.steps < self.mark:
            self.reached()

    def reached(self) -> None:
        """End work that is too long, or pause it."""
        if self.steps < 0:
            raise self._error
        if self._pause is not None:
            self.mark = max(self.steps - _STEPS_BETWEEN_PAUSES, 0)
            self._pause()

    def renewed(self) -> tuple[int, int]:
        """Give an evaluation a full account for itself; return the steps and the room to restore afterwards."""
        before = self.steps, self.room
        self.steps, self.room = MOST_STEPS, MOST_BYTES
        return before

    def build(self, size: int) -> None:
        """Take the bytes of a result from the account, and the steps to build it.

        Raises:
            WorkLimitError: If there are not so many; ``LongWorkError`` on an event loop.
        """
        self.room -= size
        if self.room < 0:
            raise WorkLimitError
        self.charge(size // _BYTES_OF_ONE_STEP)


class _Current(threading.local):
    def __init__(self) -> None:
        super().__init__()
        self.account: Account = Account(_UNLIMITED, _UNLIMITED)


CURRENT: Final = _Current()
"""The account of the current thread."""


def charge(steps: int) -> None:
    """Take steps from the account of the current thread.

    Raises:
        WorkLimitError: If there are not so many; ``LongWorkError`` on an event loop.
    """
    account = CURRENT.account
    account.steps -= steps
    if account.steps < account.mark:
        account.reached()


def build(size: int) -> None:
    """Take the bytes of a result from the account of the current thread, and the steps to build it.

    Raises:
        WorkLimitError: If there are not so many; ``LongWorkError`` on an event loop.
    """
    CURRENT.account.build(size)


def check_growth(size: int) -> None:
    """Reject a size in bytes that an object may not grow to.

    Raises:
        GrowthError: If it is larger than the account of the current thread allows.
    """
    if size > CURRENT.account.growth:
        raise GrowthError(size)


@contextmanager
def unbounded_growth() -> Generator[None]:
    """Allow objects to grow to their final bound until the block ends, because the work cannot be repeated."""
    account = CURRENT.account
    before, account.growth = account.growth, MOST_GROWN
    try:
        yield
    finally:
        account.growth = before


@contextmanager
def limited(to: Account) -> Generator[None]:
    """Charge an account for all work of the current thread until the block ends; the block must not wait."""
    before, CURRENT.account = CURRENT.account, to
    try:
        yield
    finally:
        CURRENT.account = before
