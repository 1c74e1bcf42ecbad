"""One term of leadership as a scope: losing the lease cancels the body, and the lock is released after it has ended.

The scope works as ``asyncio.timeout`` does: the task that entered it is cancelled, and the cancellation becomes a clean
exit from the block if it was ours and nobody else asked for one, too. (When leadership ends is decided in
core/election.py.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import Final, Self, final

from deltaloop.client.client import Client
from deltaloop.leaderelection.candidacy import Candidate
from deltaloop.leaderelection.core.effects import LossReason, ReleaseOutcome
from deltaloop.leaderelection.guard import LeadershipGuard
from deltaloop.leaderelection.reports import Reports


class TermEnd(StrEnum):
    """Why a term has ended.

    The last four are losses: leadership ended before the body did.
    """

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RENEW_DEADLINE = "renew deadline"
    TAKEN = "taken by another holder"
    GONE = "lock deleted or cleared"
    WEDGED = "the work's event loop does not answer"


_ENDS: Final = {
    LossReason.RENEW_DEADLINE: TermEnd.RENEW_DEADLINE,
    LossReason.TAKEN: TermEnd.TAKEN,
    LossReason.GONE: TermEnd.GONE,
    LossReason.WEDGED: TermEnd.WEDGED,
}


@final
class Term:
    """One lease won.

    Enter it once, with ``async with``, in the task that does the work. The lease is renewed while the body runs, in
    its cleanup, too. When it is lost, the body is cancelled; once the body has ended, the block is left without an
    error, ``lost`` is set and ``ended_because`` says why. A refusal of this term's guard that leaves the body
    (alone, or in a group of such) counts as the same. If the body ends first, or is cancelled from outside, the
    lock is released (``release_on_cancel``) and its result, error or cancellation goes on; releasing takes at most
    the renew deadline, and a second cancellation ends it.

    Attributes:
        fencing_token: ``resourceVersion`` that the acquiring write gave the lock. It grows from term to term; whoever
            is written to can refuse a smaller one than it has seen.
        transitions: How often leadership changed hands, this time included.
        lost: Set when leadership has ended before the body did.
        ended_because: Why the term has ended; None while it has not.
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
        """Made by a ``LeaderElector``."""
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
        """The client whose writes are refused once leadership may have ended; reads always pass.

        A write is refused with ``LeadershipLostError``, right before it would be sent, from the start of the last
        successful renewal + ``renew_deadline`` on. One that was sent before is not called back. Its connections are
        those of the client that it was made of: do not close it.

        Raises:
            RuntimeError: If the elector has no client to guard: its lock has none, and none was given to it.
        """
        if self._client is None:
            raise RuntimeError("no client to guard: give one to LeaderElector(lock, client=...)")
        return self._client

    @property
    def is_leading(self) -> bool:
        """Whether leadership stands now; from any thread."""
        return self._guard.is_open

    @property
    def leads_until(self) -> float:
        """Until when leadership stands without another renewal, on the elector's clock; -inf once it is lost."""
        return self._candidacy.election.guard_until

    @property
    def lease_until(self) -> float:
        """Until when no other candidate can lead, on the elector's clock: counted from the last renewal's start."""
        election = self._candidacy.election
        return election.renewed_at + election.timing.lease_duration

    @property
    def loss(self) -> LossReason | None:
        """Why leadership has ended before the body did; None if it has not."""
        return self._loss

    @property
    def entered(self) -> bool:
        """Whether the body was begun."""
        return self._task is not None

    @property
    def over(self) -> bool:
        """Whether the term has ended and the lock is no longer its."""
        return self._over

    def ensure_leading(self, action: str = "the action") -> None:
        """Return if leadership stands; for writes that do not go through ``client``.

        From any thread.

        Raises:
            LeadershipLostError: If it does not.
        """
        self._guard.check(action)

    def keep_lock(self) -> None:
        """Let the lock expire when the term ends, instead of releasing it: work that cannot be stopped may go on."""
        self._release = False

    async def __aenter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a term is entered in a task")
        if self._task is not None or self._over:
            raise RuntimeError("a term is entered once; take the next one from terms()")
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
        """End a term that was never entered, and release its lock."""
        if self._task is not None or self._over:
            raise RuntimeError("only a term that was not entered is abandoned")
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
            self._renewals.result()  # a bug of ours is shown, not hidden

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
        """Undo our cancellation; tell whether the exception is only our doing."""
        assert self._task is not None
        if self._cancelled:
            asked = self._task.uncancel()
            if isinstance(exc, asyncio.CancelledError):
                return asked <= self._cancellations_before
        return self._guard.caused(exc)

    def _why(self, exc: BaseException | None) -> TermEnd:
        if self._loss is not None:
            return _ENDS[self._loss]
        if exc is None:
            return TermEnd.COMPLETED
        return TermEnd.CANCELLED if isinstance(exc, asyncio.CancelledError) else TermEnd.FAILED

    def __repr__(self) -> str:
        state = str(self.ended_because) if self.ended_because else ("leading" if self.is_leading else "not leading")
        return f"<Term {self._guard.lock} of {self._guard.identity}, token {self.fencing_token}, {state}>"
