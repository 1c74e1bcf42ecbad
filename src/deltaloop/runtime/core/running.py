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

from enum import Enum
from typing import Final, TypeAlias, final

import msgspec

WARNING_INTERVAL: Final = 10.0
"""Seconds between two warnings about a run that does not stop."""


class StopReason(Enum):
    """Why a run was told to stop."""

    TIMEOUT = "its time limit has passed"
    INTERRUPTED = "leadership was lost, or the program ends"


@final
class Running(msgspec.Struct, eq=False):
    """One reconcile that runs.

    Attributes:
        key: Key of the object that is reconciled.
        number: Its number in its controller, from 1 on.
        started_at: When it began.
        deadline: When its time limit passes; None without one.
        reason: Why it has to stop; None while it need not.
    """

    key: str
    number: int
    started_at: float
    deadline: float | None
    reason: StopReason | None = None
    _told: bool = False
    _abandoned: bool = False
    _warn_at: float = 0.0

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._abandoned


@final
class AwaitRun(msgspec.Struct, frozen=True):
    """Wait until the run has ended, at most until this time; None has no limit."""

    until: float | None


@final
class Stop(msgspec.Struct, frozen=True):
    """Tell the run to stop, and ask again."""

    reason: StopReason


@final
class Warn(msgspec.Struct, frozen=True):
    """Say that the run does not stop, and ask again; ``seconds`` is how long it has run."""

    seconds: float


@final
class Leave(msgspec.Struct, frozen=True):
    """Wait no longer."""


_UNLIMITED: Final = AwaitRun(None)

Effect: TypeAlias = AwaitRun | Stop | Warn | Leave


@final
class Runs:
    """The runs of one controller."""

    def __init__(self, *, slots: int, timeout: float | None) -> None:
        """Begin without runs.

        Args:
            slots: Most runs at a time.
            timeout: Seconds that a run may take; None has no limit.
        """
        self.slots = slots
        self.timeout = timeout
        self._runs: dict[str, Running] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._runs)

    def begin(self, key: str, now: float) -> Running:
        """Take a slot for a key.

        Raises:
            RuntimeError: If the key runs already, or no slot is free; a bug of the driver.
        """
        if key in self._runs:
            raise RuntimeError(f"{key!r} is being reconciled already")
        if len(self._runs) >= self.slots:
            raise RuntimeError(f"all {self.slots} slots are taken")
        self._count += 1
        deadline = None if self.timeout is None else now + self.timeout
        run = Running(key, self._count, now, deadline)
        self._runs[key] = run
        return run

    def ask(self, run: Running, now: float) -> Effect:
        """Say what its worker does about a run that has not ended."""
        if run.abandoned:
            return Leave()
        if run.reason is None and run.deadline is not None and now >= run.deadline:
            run.reason = StopReason.TIMEOUT
        if run.reason is None:
            return _UNLIMITED if run.deadline is None else AwaitRun(run.deadline)
        if not run._told:  # noqa: SLF001 - the run is ours
            run._told = True  # noqa: SLF001 - same
            run._warn_at = now + WARNING_INTERVAL  # noqa: SLF001 - same
            return Stop(run.reason)
        if now >= run._warn_at:  # noqa: SLF001 - same
            run._warn_at = now + WARNING_INTERVAL  # noqa: SLF001 - same
            return Warn(now - run.started_at)
        return AwaitRun(run._warn_at)  # noqa: SLF001 - same

    def interrupt(self, run: Running) -> None:
        """Have a run stop, because leadership was lost or the program ends."""
        run.reason = StopReason.INTERRUPTED

    def abandon(self) -> tuple[str, ...]:
        """Wait for no run any longer; return the keys of those that there are."""
        for run in self._runs.values():
            run.reason = StopReason.INTERRUPTED
            run._abandoned = True  # noqa: SLF001 - the run is ours
        return tuple(self._runs)

    def ended(self, run: Running) -> None:
        """Free the slot and the key of a run that has really ended.

        Raises:
            RuntimeError: If it had ended before.
        """
        if self._runs.get(run.key) is not run:
            raise RuntimeError(f"the run of {run.key!r} has ended before")
        del self._runs[run.key]

    def present(self) -> tuple[Running, ...]:
        """Return the runs, the oldest first."""
        return tuple(self._runs.values())

    def lingering(self) -> tuple[Running, ...]:
        """Return the runs that were told to stop and have not ended."""
        return tuple(run for run in self._runs.values() if run._told)  # noqa: SLF001 - the runs are ours
