"""Never two leaders, whatever happens: the explorer's findings, and the seeded bugs that it must find.

The whole space of the first settings has 288,092 states and no violation; it takes a minute:
``python -m tests.leaderelection.core.explore_all``. Here the states near the start are visited at each run.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from deltaloop.leaderelection.core.effects import Fact
from deltaloop.leaderelection.core.election import Election, Phase
from deltaloop.leaderelection.core.timing import ElectionTiming
from tests.leaderelection.core.explorer import EPOCH, Settings, explore

TIMING = ElectionTiming(lease_duration=3, renew_deadline=2, retry_period=1)
SHORT = ElectionTiming(lease_duration=0.9, renew_deadline=0.8, retry_period=0.5)
PLAIN = Settings(timings=(TIMING, TIMING), rates=(1.0, 1.0), late_requests=0)

SAFE = {
    "two candidates": PLAIN,
    "from nothing": Settings(timings=(TIMING, TIMING), rates=(1.0, 1.0), begin_with_a_leader=False, slow_reads=True),
    "clocks of slightly different rates": Settings(timings=(TIMING, TIMING), rates=(1.0, 1.25)),
    "requests that arrive after they were given up": Settings(timings=(TIMING, TIMING), rates=(1.0, 1.0)),
    "the lock is given up": Settings(timings=(TIMING, TIMING), rates=(1.0, 1.0), releases=1),
    "a crash and a restart": Settings(timings=(TIMING, TIMING), rates=(1.0, 1.0), crashes=1),
    "a death and a new name": Settings(timings=(TIMING, TIMING), rates=(1.0, 1.0), restarts=1),
    "a pause": Settings(timings=(TIMING, TIMING), rates=(1.0, 1.0), pauses=1),
    "everything at once": Settings(
        timings=(TIMING, TIMING), rates=(1.0, 1.25), releases=1, crashes=1, restarts=1, pauses=1
    ),
    "different lease durations": Settings(timings=(TIMING, SHORT), rates=(1.0, 1.0)),
    "three candidates": Settings(timings=(TIMING, TIMING, TIMING), rates=(1.0, 1.25, 1.0), late_requests=0),
}


@pytest.mark.parametrize("name", SAFE)
def test_there_are_never_two_leaders_and_somebody_comes_to_lead(name: str) -> None:
    result = explore(SAFE[name], limit=4_000, check_liveness_every=100)
    assert not result.violation, "\n".join(result.violation)
    assert not result.stuck, "\n".join(["nobody comes to lead after:", *result.stuck])
    assert result.states == 4_000


class CountsFromTheAnswer(Election):
    def _leads_until(self, started_at: float, now: float) -> float:
        return now + self.timing.renew_deadline


class HasNoRenewDeadline(Election):
    def _leads_until(self, started_at: float, now: float) -> float:
        return math.inf


class TrustsTimesInTheRecord(Election):
    def _expires_at(self) -> float:
        assert self._observed is not None
        record = self._observed.record
        assert record.renew_time is not None
        return (record.renew_time - EPOCH).total_seconds() + record.lease_duration_seconds


class GoesByItsOwnDuration(Election):
    def _expires_at(self) -> float:
        return self._observed_at + self.timing.lease_duration


class TakesAHeldLock(Election):
    def _expires_at(self) -> float:
        return -math.inf


class CountsAConflictAsRenewal(Election):
    def conflicted(self, now: float, *, chance: float) -> tuple[Fact, ...]:
        facts = super().conflicted(now, chance=chance)
        if self.phase is Phase.LEADING:
            self.guard_until = now + self.timing.renew_deadline
        return facts


class CountsATimeoutAsRenewal(Election):
    def failed(self, now: float, *, chance: float, uncertain: bool = True) -> tuple[Fact, ...]:
        if self.phase is Phase.LEADING:
            self._extend(now)
        return super().failed(now, chance=chance, uncertain=uncertain)


class ActsWhileItGivesUp(Election):
    def release(self, now: float, *, give_up: bool = True) -> None:
        guard_until = self.guard_until
        super().release(now, give_up=give_up)
        self.guard_until = guard_until


BUGS = {
    "leadership counted from the answer": replace(PLAIN, election=CountsFromTheAnswer, begin_with_a_leader=False),
    "no renew deadline": replace(PLAIN, election=HasNoRenewDeadline),
    "record times trusted": replace(PLAIN, election=TrustsTimesInTheRecord, skews=(-10.0, 0.0), times_matter=True),
    "own duration in place of the recorded one": replace(PLAIN, election=GoesByItsOwnDuration, timings=(TIMING, SHORT)),
    "a held lock taken": replace(PLAIN, election=TakesAHeldLock, begin_with_a_leader=False),
    "a conflict counts as a renewal": replace(PLAIN, election=CountsAConflictAsRenewal),
    "a timeout counts as a renewal": replace(PLAIN, election=CountsATimeoutAsRenewal),
    "acting while giving up": replace(PLAIN, election=ActsWhileItGivesUp, releases=1),
    "a server without preconditions": replace(PLAIN, election=Election, preconditions=False),
    "clocks that differ by more than lease / renew deadline": replace(PLAIN, election=Election, rates=(1.0, 3.0)),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_seeded_bug_is_found(name: str) -> None:
    result = explore(BUGS[name], limit=40_000)
    print(f"{name}: {result.states} states, shortest trace:")
    for number, step in enumerate(result.violation, start=1):
        print(f"  {number:2} {step}")
    assert result.violation


@pytest.mark.parametrize("rate", [1.0, 1.25, 1.4])
def test_clocks_may_differ_by_less_than_lease_to_renew_deadline(rate: float) -> None:
    assert rate < TIMING.lease_duration / TIMING.renew_deadline
    for rates in ((1.0, rate), (rate, 1.0)):
        result = explore(replace(PLAIN, rates=rates, begin_with_a_leader=False), limit=3_000)
        assert not result.violation, "\n".join(result.violation)


@pytest.mark.parametrize("rate", [1.75, 2.0, 3.0])
def test_beyond_that_ratio_two_leaders_are_found(rate: float) -> None:
    """The same three durations in shorter ticks: a violation takes less than one tick of the others."""
    fine = ElectionTiming(lease_duration=12, renew_deadline=8, retry_period=4)
    assert rate > fine.lease_duration / fine.renew_deadline == TIMING.lease_duration / TIMING.renew_deadline
    result = explore(replace(PLAIN, timings=(fine, fine), rates=(1.0, rate)), limit=60_000)
    print(f"rate {rate:g}: {result.states} states, {len(result.violation)} steps")
    assert result.violation
