"""State machine of running reconciles.

    begin ──▶ RUNNING ──▶ ended
                 │ timeout, or interrupted (leadership lost, program ends)
                 ▼
             STOPPING ──▶ ended          told to stop once, keeps its key and worker until it has ended
                 │ the program cannot wait any longer
                 ▼
             ABANDONED ──▶ ended         the program no longer waits for it, but it keeps its key

A stopped reconcile can continue, because threads cannot be canceled and a coroutine can suppress its cancellation.
Worker and key become free only when the reconcile has ended.

Invariants: each key has at most one run. There are never more runs than workers. Each run is told to stop at most once.
An interrupted run stays interrupted even if its timeout has passed before.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, TypeVar, final

import msgspec

WARNING_INTERVAL: Final = 10.0
"""Interval in seconds between warnings about a run that does not stop."""


class StopReason(Enum):
    TIMEOUT = "its timeout expired"
    INTERRUPTED = "leadership was lost, or the program is ending"
    MOVED = "its range moves to another member"


class Running(msgspec.Struct, eq=False):
    """One running reconcile, which a driver can extend.

    Numbers start at 1 for each controller. ``reason`` is None before it is told to stop, and ``warn_at``, the time of
    the next warning that it does not stop.
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
    def __init__(
        self, make: Callable[[str, int, float, float | None], R], *, slots: int, timeout: float | None
    ) -> None:
        """Create an empty collection; ``timeout`` is in seconds, and None means no timeout."""
        self.slots = slots
        self.timeout = timeout
        self._make = make
        self._runs: dict[str, R] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._runs)

    def begin(self, key: str, now: float) -> R:
        """Start a run for a key; raises RuntimeError, a bug of the driver, without a free key or worker."""
        runs, timeout = self._runs, self.timeout
        if key in runs:
            raise RuntimeError(f"{key!r} is already being reconciled")
        if len(runs) >= self.slots:
            raise RuntimeError(f"all {self.slots} workers are busy")
        self._count = number = self._count + 1
        run = runs[key] = self._make(key, number, now, None if timeout is None else now + timeout)
        return run

    def due(self, now: float) -> tuple[list[R], list[R]]:
        """Return the runs that must be told to stop, each once, and the runs that do not stop and need a warning."""
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
        """Return the time of the next due run; None if it is unknown."""
        times = [
            run.deadline if run.reason is None else run.warn_at for run in self._runs.values() if not run.abandoned
        ]
        return min((time for time in times if time is not None), default=None)

    def interrupt(self) -> None:
        """Mark all runs to stop, because leadership was lost or the program ends."""
        for run in self._runs.values():
            run.reason = StopReason.INTERRUPTED

    def abandon(self) -> tuple[R, ...]:
        left = tuple(run for run in self._runs.values() if not run.abandoned)
        for run in left:
            run.reason = StopReason.INTERRUPTED
            run.abandoned = True
        return left

    def ended(self, run: R) -> None:
        """Remove a run that has ended, or raise RuntimeError if it was removed before."""
        key, runs = run.key, self._runs
        if key not in runs or runs[key] is not run:
            raise RuntimeError(f"the reconcile of {key!r} has already ended")
        del runs[key]

    def present(self) -> tuple[R, ...]:
        return tuple(self._runs.values())

    def lingering(self) -> tuple[R, ...]:
        """Return the runs that were told to stop and have not ended."""
        return tuple(run for run in self._runs.values() if run.warn_at is not None)
