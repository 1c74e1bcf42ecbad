"""One candidate's decisions: when to read the lock, when to write it, and from when to when it leads.

Theory
------
Candidates share one record, written with a precondition on its version, so that of two writers one fails. A leader
renews it; a candidate takes it over once it has seen no change for a whole lease duration.

    IDLE ──join──▶ CONTENDING ──won──▶ LEADING ──deadline, or the lock is not ours──▶ LOST
      ▲                │                  │                                            │
      └── DONE ◀── RELEASING ◀────────────┴──────────────── release ───────────────────┘

Two leaders at once cannot be, by this chain of inequalities, each of which a seeded bug in the tests breaks:

1. Leadership counts from the START of the last successful write. The server took the write later than that, and others
   saw it later still. An answer says nothing about when the write happened.
2. It ends ``renew_deadline`` after that start, whatever the network does (``guard_until``).
3. Others count ``lease_duration`` from when THEY saw the last change, on their own clock; times in the record were
   written by another clock and are never used. Any change counts, even one that leaves the record as it is.
4. ``lease_duration > renew_deadline``. The ratio is what clocks may differ by in rate.
5. A take-over names the version that was just read, so a renewal on its way makes it fail.

The duration that counts is the recorded one, rounded up: candidates may be configured differently.

A leader renews with the version that its last write gave (fast path), and reads only after an error. A request gets at
most half the renew deadline, so that one hanging connection does not use it all, and never more than is left of it.

Time is the caller's: ``now`` in seconds on a clock that never goes back and that runs during suspend; ``wall`` only to
be written into the record. Feeding what was not asked for raises ``RuntimeError``.

Source: client-go tools/leaderelection/leaderelection.go (``tryAcquireOrRenew``, ``renew``, ``release``). In
docs/reference/differences.md: the start of the write counts, a leader that sees the lock in other hands stops at once,
and a new version alone counts as a change.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Final, final

from deltaloop._internal.pacing import Wait, jitter
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.times import WallTime
from deltaloop.leaderelection.core.effects import (
    BecameLeader,
    Create,
    Effect,
    Fact,
    Left,
    LossReason,
    NewLeader,
    Read,
    ReleaseOutcome,
    Request,
    StepDown,
    Update,
)
from deltaloop.leaderelection.core.record import LARGEST_NUMBER, LeaderElectionRecord, LockState, whole_seconds
from deltaloop.leaderelection.core.timing import JITTER_FACTOR, ElectionTiming

_LONG_LEASE: Final = 3600.0


class ElectionPhase(Enum):
    """Where a candidate stands."""

    IDLE = "idle"
    CONTENDING = "contending"
    LEADING = "leading"
    LOST = "lost"
    RELEASING = "releasing"


class _Step(Enum):
    READ = "read"
    CREATE = "create"
    UPDATE = "update"


@final
class Election:
    """One candidate. One request is out at a time; not safe for several threads, except for reading ``guard_until``."""

    def __init__(self, identity: str, timing: ElectionTiming | None = None) -> None:
        """Make a candidate that has not joined.

        Raises:
            InvalidArgumentError: If the identity is empty: an empty holder means that nobody leads.
        """
        if not identity:
            raise InvalidArgumentError("the identity of a candidate is empty; give one that no other candidate has")
        self.identity = identity
        self.timing: ElectionTiming = timing if timing is not None else ElectionTiming()
        self.phase: ElectionPhase = ElectionPhase.IDLE
        self.guard_until: float = -math.inf
        """Until when writes as the leader are allowed, on the caller's clock; -inf if not leading. Read by threads."""
        self.slow_paths: int = 0
        self._observed: LockState | None = None
        self._observed_at = -math.inf
        self._version_is_current = False
        self._reported = ""
        self._renewed_at = -math.inf
        self._next_at = -math.inf
        self._attempt_at = -math.inf
        self._step: _Step | None = None
        self._pending: Request | None = None
        self._pending_at = -math.inf
        self._fast = False
        self._write_unknown_at: float | None = None
        self._loss: LossReason | None = None
        self._release_until = -math.inf
        self._outcome = ReleaseOutcome.NOT_HELD

    # What is known

    @property
    def leader(self) -> str:
        """The leader by the last observation; empty if nobody leads or nothing was seen yet."""
        return self._observed.record.holder_identity if self._observed is not None else ""

    @property
    def long_lease(self) -> float:
        """Seconds of a lease that another candidate holds, if it is so long that it looks like a mistake; else 0.

        The recorded duration counts, as upstream: whoever may write the Lease can keep all others from leading for 68
        years. That cannot be told from a candidate that wants it so, so it is worth a warning and nothing more.
        """
        record = self._observed.record if self._observed is not None else None
        if record is None or record.holder_identity in ("", self.identity):
            return 0.0
        seconds = float(_stored(record.lease_duration_seconds))
        return seconds if seconds > max(_LONG_LEASE, 10 * self.timing.lease_duration) else 0.0

    @property
    def renewed_at(self) -> float:
        """Start of the last successful write as the leader; -inf if there was none."""
        return self._renewed_at

    def is_leading(self, now: float) -> bool:
        """Tell whether this candidate may act as the leader now."""
        return now < self.guard_until

    # What the caller wants

    def join(self, now: float) -> None:
        """Begin to contend; at once, but not sooner than a retry period after the last attempt began."""
        if self.phase is not ElectionPhase.IDLE:
            raise RuntimeError(f"join() while {self.phase.value}; release() comes first")
        self.phase = ElectionPhase.CONTENDING
        self._step = None
        self._next_at = max(now, self._attempt_at + self.timing.retry_period)

    def release(self, now: float, *, give_up: bool = True) -> None:
        """Leave: stop acting as the leader, and give the lock up if this candidate may hold it.

        A request that is out is dropped; if it was a write, the lock is read before it is given up. Giving up takes at
        most the renew deadline and ends when the lease would have expired anyway.

        Args:
            now: Seconds on the caller's clock.
            give_up: False leaves the lock to expire.
        """
        if self._pending is not None:
            self._forget_request(now)
        holds = self._observed is not None and self._observed.record.holder_identity == self.identity
        until = self._release_until_at(now)
        self.guard_until = -math.inf
        self._loss = None
        self.phase = ElectionPhase.RELEASING
        self._release_until = until
        if not holds and self._write_unknown_at is None:
            self._outcome, self._step = ReleaseOutcome.NOT_HELD, None
        elif not give_up:
            self._outcome, self._step = ReleaseOutcome.KEPT, None
        else:
            self._outcome = ReleaseOutcome.KEPT
            self._step = _Step.UPDATE if holds and self._version_is_current else _Step.READ

    def leave(self, now: float) -> None:
        """Leave at once, without a request; what may be held expires."""
        self.release(now, give_up=False)
        self._become_idle()

    def step_down_if_due(self, now: float) -> LossReason | None:
        """End leadership if its deadline has passed; return why leadership has ended, or None."""
        if self.phase is ElectionPhase.LEADING and now >= self.guard_until:
            self._lose(LossReason.RENEW_DEADLINE)
        return self._loss

    def loss_due(self, now: float) -> LossReason | None:
        """Return why leadership has ended, its deadline counted, or None; changes nothing, so any thread may ask."""
        if self.phase is ElectionPhase.LEADING and now >= self.guard_until:
            return LossReason.RENEW_DEADLINE
        return self._loss

    def lose(self, because: LossReason, now: float) -> LossReason:
        """End leadership at once for a reason that only the caller knows; return why it has ended.

        A request that is out is dropped. Not leading any more, only the reason is returned.
        """
        due = self.step_down_if_due(now)
        if due is not None:
            return due
        if self.phase is not ElectionPhase.LEADING:
            raise RuntimeError(f"lose() while {self.phase.value}")
        if self._pending is not None:
            self._forget_request(now)
        self._lose(because)
        return because

    @property
    def attempt_is_over(self) -> bool:
        """Whether a contender has nothing to do before its next look at the lock."""
        return self.phase is ElectionPhase.CONTENDING and self._pending is None and self._step is None

    # What to do next

    def ask(self, now: float, *, wall: WallTime) -> Effect:
        """Return what to do now; a request has to be answered before the next question."""
        if self._pending is not None:
            raise RuntimeError("ask() while a request is out")
        if self.phase is ElectionPhase.IDLE:
            return Left(self._outcome)
        loss = self.step_down_if_due(now)
        if loss is not None:
            return StepDown(loss)
        if self.phase is ElectionPhase.RELEASING:
            if self._step is None or now >= self._release_until:
                self._become_idle()
                return Left(self._outcome)
        elif self._step is None:
            if now < self._next_at:
                until = self._next_at
                return Wait(min(until, self.guard_until) if self.phase is ElectionPhase.LEADING else until)
            self._begin_attempt(now)
        assert self._step is not None
        return self._request(self._step, now, wall)

    def _begin_attempt(self, now: float) -> None:
        self._attempt_at = now
        self._fast = self.phase is ElectionPhase.LEADING and self._version_is_current
        self._step = _Step.UPDATE if self._fast else _Step.READ

    def _request(self, step: _Step, now: float, wall: WallTime) -> Request:
        request: Request
        timeout = self._timeout(now)
        if step is _Step.READ:
            request = Read(timeout)
        elif step is _Step.CREATE:
            request = Create(self._own_record(wall), timeout)
        else:
            assert self._observed is not None
            request = Update(self._own_record(wall), self._observed.version, timeout)
        self._pending, self._pending_at, self._step = request, now, None
        return request

    def _timeout(self, now: float) -> float:
        most = self.timing.renew_deadline / 2
        if self.phase is ElectionPhase.LEADING:
            return min(most, self.guard_until - now)
        if self.phase is ElectionPhase.RELEASING:
            return min(most, self._release_until - now)
        return most

    def _own_record(self, wall: WallTime) -> LeaderElectionRecord:
        old = self._observed.record if self._observed is not None else None
        transitions = old.leader_transitions if old is not None else 0
        if self.phase is ElectionPhase.RELEASING:
            return LeaderElectionRecord(
                lease_duration_seconds=1, acquire_time=wall, renew_time=wall, leader_transitions=_stored(transitions)
            )
        acquire_time: WallTime | None = wall
        if old is not None and old.holder_identity == self.identity:
            acquire_time = old.acquire_time or wall
        elif old is not None:
            transitions += 1
        return LeaderElectionRecord(
            holder_identity=self.identity,
            lease_duration_seconds=whole_seconds(self.timing.lease_duration),
            acquire_time=acquire_time,
            renew_time=wall,
            leader_transitions=_stored(transitions),
        )

    # What came of it

    def observed(self, state: LockState | None, now: float, *, random: float) -> tuple[Fact, ...]:
        """Take the answer to a ``Read``: the lock, or None if there is none."""
        self._take(Read)
        self._write_unknown_at = None
        if state != self._observed:
            self._observed, self._observed_at = state, now
        self._version_is_current = state is not None
        holder = self.leader
        if self.phase is ElectionPhase.CONTENDING:
            if holder == self.identity:
                self._write_unknown_at = now  # by a write without an answer, or an earlier process of the same name
            self._step = self._step_after_read(now)
            if self._step is None:
                self._retry_contending(now, random)
        elif self.phase is ElectionPhase.LEADING:
            if holder == self.identity:
                self._step = _Step.UPDATE
            else:
                self._lose(LossReason.TAKEN if holder else LossReason.GONE)
        elif holder == self.identity:
            self._step = _Step.UPDATE
        else:
            self._outcome = ReleaseOutcome.NOT_HELD
        return self._report(holder)

    def _step_after_read(self, now: float) -> _Step | None:
        if self._observed is None:
            return _Step.CREATE
        holder = self._observed.record.holder_identity
        if not holder or holder == self.identity or now >= self._expires_at():
            return _Step.UPDATE
        return None

    def _expires_at(self) -> float:
        assert self._observed is not None
        recorded = _stored(self._observed.record.lease_duration_seconds)
        return self._observed_at + (recorded if recorded > 0 else self.timing.lease_duration)

    def wrote(self, version: str, now: float, *, random: float, token: str = "") -> tuple[Fact, ...]:
        """Take the answer to a ``Create`` or ``Update``: done, and the lock has this version now.

        Args:
            version: The lock's ``resourceVersion`` after the write.
            now: Seconds on the caller's clock.
            random: A number in [0, 1).
            token: The fencing token of this write, if that is not the version.
        """
        del random  # the next renewal is not jittered; the parameter keeps the three answers alike
        request = self._take(Create, Update)
        assert not isinstance(request, Read)
        self._write_unknown_at = None
        self._observed, self._observed_at = LockState(request.record, version, token), now
        self._version_is_current = True
        if self.phase is ElectionPhase.RELEASING:
            self._outcome = ReleaseOutcome.RELEASED
            self._reported = ""
            return ()
        if self.phase is ElectionPhase.LEADING:
            if self.step_down_if_due(now) is None:
                self._extend(now)
            return ()
        self._next_at = now
        if not self._extend(now):
            # The answer came too late to lead by. The lock is ours: the next attempt can be made at once, and a release
            # has something to give up.
            self._write_unknown_at = self._pending_at
            return ()
        self.phase = ElectionPhase.LEADING
        return BecameLeader(token or version, request.record.leader_transitions), *self._report(self.identity)

    def _extend(self, now: float) -> bool:
        # It counts from when the request was sent: when the answer came says nothing.
        until = self._pending_at + self.timing.renew_deadline
        if now >= until:
            return False
        self._renewed_at = self._pending_at
        self.guard_until = until
        self._next_at = max(now, self._pending_at + self.timing.retry_period)
        return True

    def conflicted(self, now: float, *, random: float) -> tuple[Fact, ...]:
        """Take the answer to a ``Create`` or ``Update``: refused, because the lock has changed or is gone."""
        self._take(Create, Update)
        self._version_is_current = False
        if self.phase is ElectionPhase.RELEASING:
            self._step = _Step.READ
        else:
            self._attempt_failed(now, random)
        return ()

    def failed(self, now: float, *, random: float) -> tuple[Fact, ...]:
        """Take the news that a request got no usable answer: a write may have been carried out nevertheless.

        Args:
            now: Seconds on the caller's clock.
            random: A number in [0, 1).
        """
        self._forget_request(now)
        if self.phase is not ElectionPhase.RELEASING:
            self._attempt_failed(now, random)
        return ()

    def _forget_request(self, now: float) -> None:
        request = self._take(Read, Create, Update)
        if not isinstance(request, Read):
            self._version_is_current = False
            self._write_unknown_at = now

    def _attempt_failed(self, now: float, random: float) -> None:
        if self.phase is ElectionPhase.CONTENDING:
            self._retry_contending(now, random)
        elif self._fast:
            self._fast = False
            self.slow_paths += 1
            self._step = _Step.READ
        else:
            self._next_at = max(now, self._attempt_at + self.timing.retry_period)

    # Shared by the above

    def _become_idle(self) -> None:
        self.phase = ElectionPhase.IDLE
        self._write_unknown_at = None

    def _retry_contending(self, now: float, random: float) -> None:
        self._next_at = now + jitter(self.timing.retry_period, JITTER_FACTOR, random=random)

    def _release_until_at(self, now: float) -> float:
        since = [at for at in (self._renewed_at, self._write_unknown_at) if at is not None]
        expires_at = max(since) + whole_seconds(self.timing.lease_duration)
        return min(now + self.timing.renew_deadline, expires_at)

    def _lose(self, because: LossReason) -> None:
        self.phase = ElectionPhase.LOST
        self.guard_until = -math.inf
        self._loss = because
        self._step = None

    def _take(self, *allowed: type[Request]) -> Request:
        if self._pending is None or not isinstance(self._pending, allowed):
            raise RuntimeError(f"an answer that was not asked for, while {self.phase.value}")
        request, self._pending = self._pending, None
        return request

    def _report(self, holder: str) -> tuple[Fact, ...]:
        if holder == self._reported:
            return ()
        self._reported = holder
        return (NewLeader(holder),) if holder else ()

    def __repr__(self) -> str:
        return f"<Election {self.identity} {self.phase.value}, leader {self.leader or '-'}>"


def _stored(number: int) -> int:
    """Return the nearest number that every lock can store: servers refuse others, and nobody would lead."""
    return min(max(number, 0), LARGEST_NUMBER)
