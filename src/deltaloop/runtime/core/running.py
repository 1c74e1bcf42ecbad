"""The reconciles that run: who may begin, who has to stop, and who does not stop.

States of a run:

    begin ──▶ RUNNING ──▶ ended
                 │ time limit passed, or interrupted (leadership lost, program ends)
                 ▼
             STOPPING ──▶ ended          it was told to stop once, and keeps its key and its slot until it has ended
                 │ the program cannot wait any longer
                 ▼
             ABANDONED ──▶ ended         nobody waits for it any more; its key stays its own

What was told to stop may still run: a thread cannot be cancelled, and a coroutine can swallow its cancellation. So a
slot and a key are free only when the run has ended, never when it was told to.

Invariants: one key has one run at most; there are never more runs than slots; each run is told to stop once at most; an
interrupted run stays interrupted although its time limit has passed before.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, TypeVar, final

import msgspec

WARNING_INTERVAL: Final = 10.0
"""Seconds between two warnings about a run that does not stop."""


class StopReason(Enum):
    """Why a run was told to stop."""

    TIMEOUT = "its time limit has passed"
    INTERRUPTED = "leadership was lost, or the program ends"


class Running(msgspec.Struct, eq=False):
    """One reconcile that runs; a driver may extend it.

    Attributes:
        key: Key of the object that is reconciled.
        number: Its number in its controller, from 1 on.
        started_at: When it began.
        deadline: When its time limit passes; None without one.
        reason: Why it has to stop; None while it need not.
        abandoned: Whether nobody waits for it any more.
        warn_at: When to warn that it does not stop; None while it was not told to.
    """

    key: str
    number: int
    started_at: float
    deadline: float | None
    reason: StopReason | None = None
    abandoned: bool = False
    warn_at: float | None = None


R = TypeVar("R", bound=Running)


@final
class Runs(Generic[R]):
    """The runs of one controller."""

    def __init__(
        self, make: Callable[[str, int, float, float | None], R], *, slots: int, timeout: float | None
    ) -> None:
        """Begin without runs.

        Args:
            make: Makes a run of its key, number, begin and deadline.
            slots: Most runs at a time.
            timeout: Seconds that a run may take; None has no limit.
        """
        self.slots = slots
        self.timeout = timeout
        self._make = make
        self._runs: dict[str, R] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._runs)

    def begin(self, key: str, now: float) -> R:
        """Take a slot for a key.

        Raises:
            RuntimeError: If the key runs already, or no slot is free; a bug of the driver.
        """
        if key in self._runs:
            raise RuntimeError(f"{key!r} is being reconciled already")
        if len(self._runs) >= self.slots:
            raise RuntimeError(f"all {self.slots} slots are taken")
        self._count += 1
        run = self._runs[key] = self._make(key, self._count, now, None if self.timeout is None else now + self.timeout)
        return run

    def due(self, now: float) -> tuple[list[R], list[R]]:
        """Return the runs to be told to stop, each once, and the runs to warn about because they do not stop."""
        stop, warn = list[R](), list[R]()
        for run in self._runs.values():
            if run.abandoned:
                continue
            if run.reason is None and run.deadline is not None and now >= run.deadline:
                run.reason = StopReason.TIMEOUT
            if run.reason is not None and (run.warn_at is None or now >= run.warn_at):
                (stop if run.warn_at is None else warn).append(run)
                run.warn_at = now + WARNING_INTERVAL
        return stop, warn

    def next_at(self) -> float | None:
        """Return when to ask for the next ones that are due; None if that is not known yet."""
        times = [
            run.deadline if run.reason is None else run.warn_at for run in self._runs.values() if not run.abandoned
        ]
        return min((time for time in times if time is not None), default=None)

    def interrupt(self) -> None:
        """Have all runs stop, because leadership was lost or the program ends."""
        for run in self._runs.values():
            run.reason = StopReason.INTERRUPTED

    def abandon(self) -> tuple[R, ...]:
        """Wait for no run any longer; return those that were waited for."""
        left = tuple(run for run in self._runs.values() if not run.abandoned)
        for run in left:
            run.reason = StopReason.INTERRUPTED
            run.abandoned = True
        return left

    def ended(self, run: R) -> None:
        """Free the slot and the key of a run that has really ended.

        Raises:
            RuntimeError: If it had ended before.
        """
        if self._runs.get(run.key) is not run:
            raise RuntimeError(f"the run of {run.key!r} has ended before")
        del self._runs[run.key]

    def present(self) -> tuple[R, ...]:
        """Return the runs, the oldest first."""
        return tuple(self._runs.values())

    def lingering(self) -> tuple[R, ...]:
        """Return the runs that were told to stop and have not ended."""
        return tuple(run for run in self._runs.values() if run.warn_at is not None)
