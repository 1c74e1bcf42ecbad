"""Never two leaders, whatever happens: the short form of the exploration, and the seeded bugs that it must find."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from deltaloop._internal.pacing import Wait
from deltaloop.leaderelection.core.election import (
    Create,
    Election,
    ElectionPhase,
    ElectionTiming,
    Fact,
    Read,
    Request,
    StepDown,
    Update,
)
from deltaloop.leaderelection.core.record import LeaderElectionRecord, LockState, whole_seconds
from tests.leaderelection.core.explorer import explore
from tests.leaderelection.core.frozen import EPOCH, Cores, Frozen, Holder, Member, Record
from tests.leaderelection.core.settings import HALVES, SLOW, THREE, TIMING, TWO, USUAL
from tests.leaderelection.core.worlds import Settings
from tests.nightly import by_day

LED = replace(THREE, begin_with_a_leader=True)
# Within how many steps of the start, None for all there are; and how many states these are.
SAFE: dict[str, tuple[Settings, int | None, int]] = {
    "two candidates": (TWO, None, 58_449),
    "two candidates, two clocks": (replace(TWO, members=(USUAL, SLOW), slow_answers=False), None, 33_503),
    "two candidates, the lock is given up": (replace(TWO, releases=True), 18, 14_958),
    "two candidates, different lease durations": (replace(TWO, members=(USUAL, Member(HALVES))), 20, 18_510),
    "three candidates, one leads": (LED, 13, 47_810),
    "three candidates, one leads, two clocks": (replace(LED, members=(USUAL, SLOW, SLOW)), 12, 36_156),
    "three candidates, no crashes": (
        replace(THREE, crashes=False, restarts=False, late=False, slow_answers=False),
        21,
        69_325,
    ),
}


@pytest.mark.parametrize(
    "name", by_day(SAFE, ["two candidates, different lease durations", "two candidates, the lock is given up"])
)
def test_at_most_one_leader_and_leadership_is_recoverable(name: str) -> None:
    settings, depth, states = SAFE[name]
    result = explore(settings) if depth is None else explore(settings, depth=depth)
    print(f"{name}: {result}")
    assert not result.violation, "\n".join(result.violation)
    assert not result.stuck, "\n".join(["nobody comes to lead after:", *result.stuck])
    assert result.complete == (depth is None)
    assert result.states == states
    assert result.recovery <= 9


def seeded(name: str, **methods: Callable[..., Any]) -> type[Election]:
    """Return the class with other methods in the place of some of its own."""
    assert methods.keys() <= vars(Election).keys()
    return type(name, (Election,), methods)


def _leads_for(seconds: Callable[[Election], float]) -> Callable[..., bool]:
    """Return how an election extends its leadership if it counts from the answer on."""

    def extend(self: Election, now: float) -> bool:
        self._renewed_at = self._pending_at
        self.guard_until = now + seconds(self)
        self._next_at = max(now, self._pending_at + self.timing.retry_period)
        return True

    return extend


def _by_the_record(self: Election) -> float:
    assert self._observed is not None
    record = self._observed.record
    assert record.renew_time is not None
    return (record.renew_time - EPOCH).total_seconds() + record.lease_duration_seconds


def _by_its_own_duration(self: Election) -> float:
    return self._observed_at + self.timing.lease_duration


def _at_once(_: Election) -> float:
    return -math.inf


_conflicted, _failed, _release = Election.conflicted, Election.failed, Election.release


def _renewed_by_a_conflict(self: Election, now: float, *, random: float) -> tuple[Fact, ...]:
    facts = _conflicted(self, now, random=random)
    if self.phase is ElectionPhase.LEADING:
        self.guard_until = now + self.timing.renew_deadline
    return facts


def _renewed_by_a_timeout(self: Election, now: float, *, random: float) -> tuple[Fact, ...]:
    if self.phase is ElectionPhase.LEADING:
        self._extend(now)
    return _failed(self, now, random=random)


def _still_acting(self: Election, now: float, *, give_up: bool = True) -> None:
    guard_until = self.guard_until
    _release(self, now, give_up=give_up)
    self.guard_until = guard_until


def _never_again(self: Election, _now: float, _random: float) -> None:
    self._next_at = math.inf


CountsFromTheAnswer = seeded("CountsFromTheAnswer", _extend=_leads_for(lambda self: self.timing.renew_deadline))
HasNoRenewDeadline = seeded("HasNoRenewDeadline", _extend=_leads_for(lambda _: math.inf))
TrustsTimesInTheRecord = seeded("TrustsTimesInTheRecord", _expires_at=_by_the_record)
GoesByItsOwnDuration = seeded("GoesByItsOwnDuration", _expires_at=_by_its_own_duration)
TakesAHeldLock = seeded("TakesAHeldLock", _expires_at=_at_once)
CountsAConflictAsRenewal = seeded("CountsAConflictAsRenewal", conflicted=_renewed_by_a_conflict)
CountsATimeoutAsRenewal = seeded("CountsATimeoutAsRenewal", failed=_renewed_by_a_timeout)
ActsWhileItGivesUp = seeded("ActsWhileItGivesUp", release=_still_acting)
# Stops trying for good when a request fails: nobody comes to lead.
GivesUpAfterALostTryOnly = seeded("GivesUpAfterALostTryOnly", _retry_contending=_never_again)


PLAIN = replace(TWO, crashes=False, restarts=False, late=False)
BUGS = {
    "leadership counted from the answer": replace(PLAIN, election=CountsFromTheAnswer),
    "no renew deadline": replace(PLAIN, election=HasNoRenewDeadline),
    "record times trusted": replace(
        PLAIN, election=TrustsTimesInTheRecord, members=(Member(TIMING, skew=-10.0), USUAL), times_matter=True
    ),
    "own duration in place of the recorded one": replace(
        PLAIN, election=GoesByItsOwnDuration, members=(USUAL, Member(HALVES))
    ),
    "a held lock taken": replace(PLAIN, election=TakesAHeldLock),
    "a conflict counts as a renewal": replace(PLAIN, election=CountsAConflictAsRenewal),
    "a timeout counts as a renewal": replace(PLAIN, election=CountsATimeoutAsRenewal),
    "acting while giving up": replace(PLAIN, election=ActsWhileItGivesUp, releases=True),
    "a server without preconditions": replace(PLAIN, preconditions=False),
    "clocks that differ by more than lease / renew deadline": replace(PLAIN, members=(USUAL, Member(TIMING, rate=0.6))),
    "three candidates, a held lock taken": replace(THREE, election=TakesAHeldLock),
    "three candidates, clocks that differ by too much": replace(
        THREE,
        members=(USUAL, USUAL, Member(TIMING, rate=0.6)),
        crashes=False,
        restarts=False,
        late=False,
        slow_answers=False,
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", BUGS)
def test_seeded_bug_is_detected(name: str) -> None:
    result = explore(BUGS[name], depth=30, progress=False)
    print(f"{name}: {result.states} states, shortest trace:")
    for number, step in enumerate(result.violation, start=1):
        print(f"  {number:2} {step}")
    assert result.violation
    assert len(result.violation) == result.depth


def test_candidate_that_never_retries_is_detected() -> None:
    result = explore(replace(PLAIN, election=GivesUpAfterALostTryOnly), depth=12)
    print("\n".join(result.stuck))
    assert not result.violation
    assert result.stuck


@pytest.mark.parametrize("rate", [0.95, 0.75, 0.67])
def test_clock_rates_within_lease_to_deadline_ratio_are_safe(rate: float) -> None:
    assert 1 / rate < TIMING.lease_duration / TIMING.renew_deadline
    result = explore(replace(PLAIN, members=(USUAL, Member(TIMING, rate=rate)), slow_answers=False), progress=False)
    assert result.complete
    assert not result.violation, "\n".join(result.violation)


@pytest.mark.parametrize("rate", [0.66, 0.5, 0.3])
def test_clock_rates_beyond_ratio_allow_two_leaders(rate: float) -> None:
    assert 1 / rate > TIMING.lease_duration / TIMING.renew_deadline
    result = explore(replace(PLAIN, members=(USUAL, Member(TIMING, rate=rate))), progress=False)
    print(f"rate {rate:g}: {result.states} states, {len(result.violation)} steps")
    assert result.violation


@pytest.mark.parametrize("seed", by_day(range(40), range(8)))
def test_frozen_candidate_matches_real_election(seed: int) -> None:
    """The real core on an ordinary clock, with versions and names, step by step beside its frozen double."""
    numbers = random.Random(seed)
    timing = numbers.choice(
        [TIMING, HALVES, ElectionTiming(lease_duration=0.875, renew_deadline=0.75, retry_period=0.5)]
    )
    releases = numbers.random() < 0.5
    cores = Cores((Member(timing),), Election, releases=releases, times_matter=False)
    real, now, version = Election("me", timing), 0.0, 0
    real.join(now)
    frozen = cores.fresh(0)
    request: Request | None = None
    for _ in range(300):
        choice = numbers.random()
        if choice < 0.3:
            now += 1.0
            frozen = cores.later(frozen)
        elif request is None:
            if releases and real.phase is ElectionPhase.LEADING and choice < 0.4:
                real.release(now)
                frozen = cores.released(frozen)
            else:
                frozen, request = _ask(real, now, cores, frozen, numbers)
        else:
            asked, request = request, None
            version += 1
            if choice < 0.45:
                real.failed(now, random=0.0)
                frozen = cores.failed(frozen)
            elif isinstance(asked, Read):
                frozen = _read(real, now, cores, frozen, numbers, version)
            elif choice < 0.7:
                real.conflicted(now, random=0.0)
                frozen = cores.conflicted(frozen)
            else:
                real.wrote(str(version), now, random=0.0)
                frozen = cores.wrote(frozen)
        assert cores.freeze(0, _at_zero(real, now)) == frozen


def _ask(
    real: Election, now: float, cores: Cores, frozen: Frozen, numbers: random.Random
) -> tuple[Frozen, Request | None]:
    _, ways = cores.ask(frozen)
    effect = real.ask(now, wall=EPOCH)
    if isinstance(effect, Wait):
        assert ways == ()
        return frozen, None
    if isinstance(effect, StepDown) and len(ways) == 2 and numbers.random() < 0.5:
        real.release(now)
        return ways[1], None
    if isinstance(effect, StepDown):
        real.leave(now)
    if not isinstance(effect, Read | Create | Update):
        real._attempt_at = -math.inf  # its double may try again at once; the real one is as slow as it may be anyway
        real.join(now)
        return ways[0], None
    return ways[0], effect


def _read(real: Election, now: float, cores: Cores, frozen: Frozen, numbers: random.Random, version: int) -> Frozen:
    if numbers.random() < 0.3:
        real.observed(real._observed, now, random=0.0)
        return cores.observed(frozen, None, same=True)
    holder = numbers.choice([None, *Holder])
    if holder is None:
        real.observed(None, now, random=0.0)
        return cores.observed(frozen, None, same=False)
    name = ("", "me", "other")[holder]
    duration = whole_seconds(real.timing.lease_duration)
    record = LeaderElectionRecord(holder_identity=name, lease_duration_seconds=duration)
    real.observed(LockState(record, str(version)), now, random=0.0)
    return cores.observed(frozen, Record(holder, duration), same=False)


def _at_zero(real: Election, now: float) -> Election:
    moved = copy.copy(real)
    for name, value in vars(real).items():
        if name.endswith(("_at", "_until")) and isinstance(value, float):
            setattr(moved, name, value - now)
    return moved
