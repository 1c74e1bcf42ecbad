"""One candidate, answered in every way that a lock can answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime

from tools.diagrams.model import Diagram, Machine, Move, walked

from deltaloop._internal.pacing import Wait
from deltaloop.leaderelection.core.election import (
    Create,
    Election,
    ElectionPhase,
    Left,
    Read,
    Request,
    StepDown,
    Update,
)
from deltaloop.leaderelection.core.record import LeaderElectionRecord, LockState

WALL = datetime(2026, 1, 1, tzinfo=UTC)
CHANCE = 0.0


class _Candidate:
    """An election and the lock that it is about; each request is answered in the same moment."""

    def __init__(self) -> None:
        self.election = Election("a")
        self.now = 0.0
        self.version = 0
        self.request: Request | None = None

    def join(self) -> None:
        self.election.join(self.now)
        self.go_on()

    def go_on(self) -> None:
        """Ask, and let time pass, until there is a request or nothing to do."""
        self.request = None
        while True:
            effect = self.election.ask(self.now, wall=WALL)
            if isinstance(effect, Wait):
                self.now = effect.until
            elif isinstance(effect, Left | StepDown):
                return
            else:
                self.request = effect
                return

    def answer(self, feed: Callable[[], object]) -> None:
        feed()
        if self.election.phase is not ElectionPhase.LOST:
            self.go_on()

    def read(self, holder: str | None) -> None:
        self.version += holder != "a"
        record = LeaderElectionRecord(holder_identity=holder or "", lease_duration_seconds=15)
        state = None if holder is None else LockState(record, str(self.version))
        self.answer(lambda: self.election.observed(state, self.now, random=CHANCE))

    def read_expired(self) -> None:
        """Read the same record again and again until it has not changed for a lease duration."""
        record = LeaderElectionRecord(holder_identity="b", lease_duration_seconds=15)
        state = LockState(record, str(self.version))
        while isinstance(self.request, Read):
            self.answer(lambda: self.election.observed(state, self.now, random=CHANCE))

    def wrote(self) -> None:
        self.version += 1
        self.answer(lambda: self.election.wrote(str(self.version), self.now, random=CHANCE))

    def conflicted(self) -> None:
        self.answer(lambda: self.election.conflicted(self.now, random=CHANCE))

    def failed(self) -> None:
        self.answer(lambda: self.election.failed(self.now, random=CHANCE))

    def hang(self) -> None:
        """Let a request hang until leadership has ended by the clock."""
        self.now = max(self.now, self.election.guard_until)
        self.election.step_down_if_due(self.now)
        if self.request is not None:
            self.election.failed(self.now, random=CHANCE)
            self.request = None

    def release(self) -> None:
        self.election.release(self.now)
        self.go_on()


def _view(candidate: _Candidate) -> str:
    return candidate.election.phase.value


def _identity(candidate: _Candidate) -> Hashable:
    election = candidate.election
    request = type(candidate.request).__name__
    left = election.guard_until - candidate.now
    return election.phase, request, election.leader, math.ceil(left) if math.isfinite(left) else None


def _moves(candidate: _Candidate) -> Iterable[Move[_Candidate]]:
    phase, request = candidate.election.phase, candidate.request
    if phase is ElectionPhase.IDLE:
        yield "`join`", lambda candidate: candidate.join()
        return
    if phase is ElectionPhase.LOST:
        yield "the work has ended: `release`", lambda candidate: candidate.release()
        return
    if isinstance(request, Read):
        yield "read: no lock", lambda candidate: candidate.read(None)
        yield "read: the lock is free", lambda candidate: candidate.read("")
        yield "read: held by another candidate", lambda candidate: candidate.read("b")
        yield "read: held by this candidate", lambda candidate: candidate.read("a")
        if phase is ElectionPhase.CONTENDING:
            yield "read: unchanged for a lease duration", lambda candidate: candidate.read_expired()
    if isinstance(request, Create | Update):
        yield "write: success", lambda candidate: candidate.wrote()
        yield "write: conflict", lambda candidate: candidate.conflicted()
    if request is not None:
        yield "no response", lambda candidate: candidate.failed()
    if phase is ElectionPhase.LEADING:
        yield "no renewal before the deadline", lambda candidate: candidate.hang()
    if phase is not ElectionPhase.RELEASING:
        yield "`release`", lambda candidate: candidate.release()


def diagrams() -> list[Diagram]:
    """Walk one candidate."""
    machine = Machine(_Candidate, _moves, view=_view, identity=_identity)
    title = "One candidate of an election"
    return [walked("leader-election", "leader-election", title, "leaderelection/core/election.py", machine)]
