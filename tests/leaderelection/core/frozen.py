"""An election as a value: all that decides what it will do, in times relative to now, and the shipped core run on it.

``freeze`` takes a candidate apart and leaves out what cannot matter any more: how long ago something was, beyond the
longest duration that it is compared with; who exactly leads, if it is somebody else; the numbers of versions. ``thaw``
puts one together again at time 0. So a candidate has few values, each input is given to the core once for each value,
and what came of it is remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import NamedTuple

from deltaloop._internal.pacing import Wait
from deltaloop.leaderelection.core.election import (
    Create,
    Election,
    ElectionPhase,
    ElectionTiming,
    Left,
    LossReason,
    Read,
    ReleaseOutcome,
    Request,
    StepDown,
    Update,
)
from deltaloop.leaderelection.core.election import _Step as Step
from deltaloop.leaderelection.core.record import LeaderElectionRecord, LockState, whole_seconds

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = 12.0


class Holder(IntEnum):
    """Whom a record names, seen by one candidate."""

    NOBODY = 0
    ME = 1
    OTHER = 2


class Record(NamedTuple):
    """A record as one candidate sees it; ``written`` is None unless times matter."""

    holder: Holder
    duration: int
    written: float | None = None


class Out(NamedTuple):
    """A request that is out. ``age`` counts for writes only; a record without holder gives the lock up."""

    kind: type[Request]
    record: Record | None = None
    age: float = 0.0


class Frozen(NamedTuple):
    """A candidate; times are seconds from now on its own clock."""

    member: int
    phase: ElectionPhase
    observed: Record | None
    observed_at: float
    current: bool
    next_at: float
    attempt_at: float
    renewed_at: float
    guard_until: float
    step: Step | None
    out: Out | None
    fast: bool
    unknown_at: float | None
    release_until: float


@dataclass(frozen=True)
class Member:
    """One candidate of a setting.

    Attributes:
        timing: Its durations.
        rate: How far its clock goes while a tick passes.
        skew: By how much its wall clock is off.
    """

    timing: ElectionTiming
    rate: float = 1.0
    skew: float = 0.0


class Cores:
    """The candidates of a setting as values, and what the core does with them."""

    def __init__(
        self,
        members: tuple[Member, ...],
        election: Callable[[str, ElectionTiming], Election],
        *,
        releases: bool,
        times_matter: bool,
    ) -> None:
        self.members = members
        self._election = election
        self._releases = releases
        self._times_matter = times_matter
        self._longest = float(max(whole_seconds(member.timing.lease_duration) for member in members))

    def fresh(self, member: int) -> Frozen:
        """Return a candidate that has just joined and seen nothing."""
        election = self._election("me", self.members[member].timing)
        election.join(0.0)
        return self.freeze(member, election)

    def later(self, frozen: Frozen) -> Frozen:
        """Let a tick pass."""
        election = self.thaw(frozen)
        rate = self.members[frozen.member].rate
        for name in (
            *("_observed_at", "_next_at", "_attempt_at", "_renewed_at", "guard_until", "_pending_at"),
            *("_write_unknown_at", "_release_until"),
        ):
            if getattr(election, name) is not None:
                setattr(election, name, getattr(election, name) - rate)
        return self.freeze(frozen.member, election, passed=rate)

    def ask(self, frozen: Frozen) -> tuple[str, tuple[Frozen, ...]]:
        """Let it do what it asks for; nothing if that is to wait."""
        election = self.thaw(frozen)
        effect = election.ask(0.0, wall=EPOCH + timedelta(seconds=self.members[frozen.member].skew))
        if isinstance(effect, Wait):
            return "waits", ()
        if isinstance(effect, Read | Create | Update):
            holder = "" if isinstance(effect, Read) else f", holder {effect.record.holder_identity or 'nobody'}"
            return f"sends: {type(effect).__name__.lower()}{holder}", (self.freeze(frozen.member, election),)
        if isinstance(effect, Left):
            election.join(0.0)
            return "contends again", (self.freeze(frozen.member, election),)
        assert isinstance(effect, StepDown)
        ways = [self.thaw(self.freeze(frozen.member, election)) for _ in range(1 + self._releases)]
        ways[0].leave(0.0)
        ways[0].join(0.0)
        if self._releases:
            ways[1].release(0.0)
        return "steps down", tuple(self.freeze(frozen.member, way) for way in ways)

    def observed(self, frozen: Frozen, record: Record | None, *, same: bool) -> Frozen:
        """Give it the answer to a read; ``same`` if it is the version that it has seen already."""
        election = self.thaw(frozen)
        state = election._observed if same else self._state(record, "new")
        election.observed(state, 0.0, random=0.0)
        return self.freeze(frozen.member, election)

    def wrote(self, frozen: Frozen) -> Frozen:
        """Tell it that its write was carried out."""
        election = self.thaw(frozen)
        election.wrote("new", 0.0, random=0.0)
        return self.freeze(frozen.member, election)

    def conflicted(self, frozen: Frozen) -> Frozen:
        """Tell it that its write was refused."""
        election = self.thaw(frozen)
        election.conflicted(0.0, random=0.0)
        return self.freeze(frozen.member, election)

    def failed(self, frozen: Frozen) -> Frozen:
        """Tell it that there is no answer."""
        election = self.thaw(frozen)
        election.failed(0.0, random=0.0)
        return self.freeze(frozen.member, election)

    def released(self, frozen: Frozen) -> Frozen:
        """Have it give the lock up."""
        election = self.thaw(frozen)
        election.release(0.0)
        return self.freeze(frozen.member, election)

    def freeze(self, member: int, election: Election, *, passed: float = 0.0) -> Frozen:
        """Take a candidate apart, at time 0."""
        phase = election.phase
        timing = election.timing
        lease = float(whole_seconds(timing.lease_duration))
        leading = phase is ElectionPhase.LEADING
        observed = self._record(election._observed.record, passed) if election._observed is not None else None
        others = observed is not None and observed.holder is Holder.OTHER
        if observed is not None and not others:
            observed = observed._replace(duration=0, written=None)
        out = self._out(election._pending, election._pending_at, timing, passed)
        busy = out is not None or election._step is not None
        may_release = self._releases and phase in (ElectionPhase.LEADING, ElectionPhase.LOST)
        unknown = election._write_unknown_at if may_release else None
        return Frozen(
            member=member,
            phase=phase,
            observed=observed,
            observed_at=max(election._observed_at, -self._longest) if others else 0.0,
            current=election._version_is_current and (leading or may_release),
            next_at=max(election._next_at, 0.0)
            if not busy and phase in (ElectionPhase.LEADING, ElectionPhase.CONTENDING)
            else 0.0,
            attempt_at=max(election._attempt_at, -timing.retry_period) if leading and busy else -timing.retry_period,
            renewed_at=max(election._renewed_at, -lease) if may_release else 0.0,
            guard_until=max(election.guard_until, 0.0),
            step=election._step,
            out=out,
            fast=election._fast and leading and busy,
            unknown_at=None if unknown is None else max(unknown, -lease),
            release_until=max(election._release_until, 0.0) if phase is ElectionPhase.RELEASING else 0.0,
        )

    def thaw(self, frozen: Frozen) -> Election:
        """Put a candidate together, at time 0."""
        election = self._election("me", self.members[frozen.member].timing)
        election.phase = frozen.phase
        election._observed = self._state(frozen.observed, "old")
        election._observed_at = frozen.observed_at
        election._version_is_current = frozen.current
        election._next_at = frozen.next_at
        election._attempt_at = frozen.attempt_at
        election._renewed_at = frozen.renewed_at
        election.guard_until = frozen.guard_until
        election._step = frozen.step
        election._fast = frozen.fast
        election._write_unknown_at = frozen.unknown_at
        election._release_until = frozen.release_until
        election._loss = LossReason.RENEW_DEADLINE if frozen.phase is ElectionPhase.LOST else None
        election._outcome = ReleaseOutcome.NOT_HELD
        if frozen.out is not None:
            election._pending = self._request(frozen.out)
            election._pending_at = -frozen.out.age
        return election

    def _out(self, request: Request | None, sent_at: float, timing: ElectionTiming, passed: float) -> Out | None:
        if request is None or isinstance(request, Read):
            return None if request is None else Out(Read)
        record = self._record(request.record, passed)
        leads = record.holder is Holder.ME
        return Out(type(request), record, min(-sent_at, timing.renew_deadline) if leads else 0.0)

    def _request(self, out: Out) -> Request:
        if out.record is None:
            return Read(1.0)
        state = self._state(out.record, "old")
        assert state is not None
        return Create(state.record, 1.0) if out.kind is Create else Update(state.record, "old", 1.0)

    def _record(self, record: LeaderElectionRecord, passed: float) -> Record:
        holder = Holder(("", "me", "other").index(record.holder_identity))
        written: float | None = None
        if self._times_matter and record.renew_time is not None:
            written = max((record.renew_time - EPOCH).total_seconds() - passed, -LONG_AGO)
        return Record(holder, record.lease_duration_seconds if holder else 0, written)

    def _state(self, record: Record | None, version: str) -> LockState | None:
        if record is None:
            return None
        written = None if record.written is None else EPOCH + timedelta(seconds=record.written)
        return LockState(
            LeaderElectionRecord(
                holder_identity=("", "me", "other")[record.holder],
                lease_duration_seconds=record.duration,
                renew_time=written,
            ),
            version,
        )


def is_leading(frozen: Frozen) -> bool:
    """Tell whether a candidate may write as the leader."""
    return frozen.guard_until > 0.0
