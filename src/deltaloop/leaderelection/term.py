"""Term of leadership as an async context manager that cancels its body when the lease is lost.

It works like ``asyncio.timeout``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import Self, final

from deltaloop.client.client import Client
from deltaloop.leaderelection.candidacy import Candidate
from deltaloop.leaderelection.core.election import LossReason, ReleaseOutcome
from deltaloop.leaderelection.guard import LeadershipGuard
from deltaloop.leaderelection.reports import Reports


class TermEnd(StrEnum):
    """Reason for the end of a term.

    The last four values are losses: leadership ended before the body did.
    """

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RENEW_DEADLINE = "renew deadline"
    TAKEN = "taken by another holder"
    GONE = "lock deleted or cleared"
    WEDGED = "the work's event loop does not answer"


@final
class Term:
    """One period of leadership.

    Enter it once with ``async with``, in the task that does the work. deltaloop renews the lease while the body runs,
    including its cleanup.

    If the lease is lost, the body is canceled. After the body has ended, the block exits without an error, ``lost`` is
    set and ``ended_because`` has the reason. The same happens if a ``LeadershipLostError`` of this term leaves the
    body, alone or in a group of such errors.

    If the body ends first or is canceled from outside, the lock is released (``release_on_cancel``), and the result,
    error or cancellation propagates. Releasing takes at most the renew deadline, and a second cancellation ends it.

    Attributes:
        fencing_token: ``resourceVersion`` of the write that acquired the lock. It increases from term to term, so a
            receiving system can reject tokens that are smaller than the largest known token.
        transitions: Number of leader changes, including this term.
        lost: Event that is set when leadership ends before the body does.
        ended_because: Reason for the end of the term, or None before its end.
    """

    def __init__(
        self,
        candidacy: Candidate,
        guard: LeadershipGuard,
        *,
        client: Client | None,
        transitions: int,
        release: bool,
        warning_interval: float,
        clock: Callable[[], float],
        reports: Reports,
    ) -> None:
        self.fencing_token: str = guard.fencing_token
        self.transitions = transitions
        self.lost: asyncio.Event = asyncio.Event()
        self.ended_because: TermEnd | None = None
        self._candidacy = candidacy
        self._guard = guard
        self._client: Client | None = client.with_write_check(guard.check) if client is not None else None
        self._release = release
        self._warning_interval = warning_interval
        self._clock = clock
        self._reports = reports
        self._task: asyncio.Task[object] | None = None
        self._renewals: asyncio.Task[None] | None = None
        self._cancellations_before = 0
        self._cancelled = False
        self._body_ended = False
        self._loss: LossReason | None = None
        self._over = False

    @property
    def client(self) -> Client:
        """Client that rejects writes after leadership may have ended.

        It raises ``LeadershipLostError`` immediately before it would send a write, if ``renew_deadline`` has passed
        since the start of the last successful renewal. It cannot recall writes that were sent before. Reads are always
        allowed. It shares the connections of the original client, so do not close it.

        Raises:
            RuntimeError: If neither the elector nor its lock has a client.
        """
        if self._client is None:
            raise RuntimeError("term.client requires a client. Pass LeaderElector(lock, client=...).")
        return self._client

    @property
    def is_leading(self) -> bool:
        """Whether this process leads.

        Thread-safe.
        """
        return self._guard.is_open

    @property
    def leads_until(self) -> float:
        """Time until which this process leads without another renewal, on the elector's clock. -inf after a loss."""
        return self._candidacy.election.guard_until

    @property
    def lease_until(self) -> float:
        """Time until which no other candidate can lead, on the elector's clock, counted from the last renewal."""
        election = self._candidacy.election
        return election.renewed_at + election.timing.lease_duration

    @property
    def loss(self) -> LossReason | None:
        """Reason why leadership ended before the body, or None."""
        return self._loss

    @property
    def entered(self) -> bool:
        """Whether the term was entered."""
        return self._task is not None

    @property
    def over(self) -> bool:
        """Whether the term has ended and its lock was given up."""
        return self._over

    def ensure_leading(self, action: str = "the action") -> None:
        """Check that this process leads, for writes that do not use ``client``.

        It is thread-safe.

        Raises:
            LeadershipLostError: If this process does not lead.
        """
        self._guard.check(action)

    def keep_lock(self) -> None:
        """Let the lock expire after the term instead of releasing it, because some work may still be running."""
        self._release = False

    async def __aenter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a term must be entered in a task")
        if self._task is not None or self._over:
            raise RuntimeError("a term can be entered only once. Take the next term from terms().")
        self._task = task
        self._cancellations_before = task.cancelling()
        self._candidacy.begin()
        self._renewals = asyncio.create_task(self._keep(), name=f"renewals of {self._guard.lock}")
        self._reports.started_leading()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        assert self._task is not None
        self._body_ended = True
        if self._loss is None:
            self._loss = self._candidacy.election.loss_due(self._clock())
            if self._loss is not None:
                self._note_loss(self._loss)
        self._guard.close()
        caused = self._take_back_cancellation(exc)
        self.ended_because = self._why(exc)
        self._reports.stopped_leading(was_lost=self._loss is not None)
        await self._finish()
        return caused

    async def abandon(self) -> None:
        """End a term that was not entered, and release its lock."""
        if self._task is not None or self._over:
            raise RuntimeError("only a term that was not entered can be abandoned")
        self._guard.close()
        self.ended_because = TermEnd.COMPLETED
        await self._finish()

    async def _finish(self) -> None:
        outcome = ReleaseOutcome.KEPT
        try:
            if self._renewals is not None:
                self._renewals.cancel()
                await asyncio.wait([self._renewals])
            outcome = await self._candidacy.give_up(release=self._release)
        finally:
            self._over = True
            self._reports.ended(str(self.ended_because), outcome)
            await self._candidacy.close()
        if self._renewals is not None and not self._renewals.cancelled():
            self._renewals.result()  # raises if the renewals failed because of a bug in deltaloop

    async def _keep(self) -> None:
        try:
            because = await self._candidacy.renew()
        except Exception:
            self._lose(LossReason.RENEW_DEADLINE)
            raise
        self._lose(because)
        while True:
            await asyncio.sleep(self._warning_interval)
            assert self._task is not None
            self._reports.still_running(self._task.get_name(), because)

    def _lose(self, because: LossReason) -> None:
        assert self._task is not None
        self._loss = because
        self._note_loss(because)
        if self._body_ended:
            return
        self._cancelled = True
        self._task.cancel(f"leadership of {self._guard.lock} is lost: {because}")

    def _note_loss(self, because: LossReason) -> None:
        self._guard.close()
        self.lost.set()
        self._reports.lost(because)

    def _take_back_cancellation(self, exc: BaseException | None) -> bool:
        """Undo the cancellation of this term, and return whether the exception comes only from this term."""
        assert self._task is not None
        if self._cancelled:
            asked = self._task.uncancel()
            if isinstance(exc, asyncio.CancelledError):
                return asked <= self._cancellations_before
        return self._guard.caused(exc)

    def _why(self, exc: BaseException | None) -> TermEnd:
        if self._loss is not None:
            return TermEnd(self._loss.value)
        if exc is None:
            return TermEnd.COMPLETED
        return TermEnd.CANCELLED if isinstance(exc, asyncio.CancelledError) else TermEnd.FAILED

    def __repr__(self) -> str:
        state = str(self.ended_because) if self.ended_because else ("leading" if self.is_leading else "not leading")
        return f"<Term {self._guard.lock} of {self._guard.identity}, token {self.fencing_token}, {state}>"
