from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from deltaloop._internal.pacing import Reservation, TokenBucket
from tests.nightly import examples


def test_bucket_allows_burst_then_rate() -> None:
    bucket = TokenBucket(rate=10, burst=3)
    assert [bucket.reserve(0.0).delay(0.0) for _ in range(6)] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])
    assert bucket.tokens == -3
    assert bucket.reserve(1.0).delay(1.0) == 0
    assert bucket.tokens == pytest.approx(2)  # ten came, three were owed, three is the most, one went


def test_bucket_matches_default_of_client_go() -> None:
    bucket = TokenBucket(rate=10, burst=100)
    delays = [bucket.reserve(0.0).delay(0.0) for _ in range(105)]
    assert delays[:100] == [0.0] * 100
    assert delays[100:] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_try_take() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    assert bucket.try_take(0.0)
    assert not bucket.try_take(0.9)
    assert bucket.try_take(1.0)
    assert not bucket.try_take(0.5)  # a clock that went back gives nothing


def test_refunded_reservation_is_reused_first() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    first, second, third = [bucket.reserve(0.0) for _ in range(4)][1:]
    assert [first.due_at, second.due_at, third.due_at] == [1.0, 2.0, 3.0]
    bucket.refund(second, 0.5)
    bucket.refund(first, 0.5)
    bucket.refund(first, 0.5)
    assert bucket.tokens == pytest.approx(-0.5)
    assert [bucket.reserve(0.5).due_at for _ in range(3)] == [1.0, 2.0, 4.0]


def test_refund_of_all_reservations_leaves_no_debt() -> None:
    bucket = TokenBucket(rate=1, burst=5)
    taken = [bucket.reserve(0.0) for _ in range(1000)]
    for reservation in taken[5:]:
        bucket.refund(reservation, 0.0)
    assert bucket.tokens == 0
    assert bucket.reserve(0.0).due_at == 1.0


def test_due_reservation_is_not_refunded() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    now = bucket.reserve(0.0)
    later = bucket.reserve(0.0)
    bucket.refund(now, 0.0)
    bucket.refund(later, 1.0)
    assert bucket.tokens == 0


def test_refund_of_foreign_reservation_is_ignored() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    bucket.reserve(0.0)
    bucket.refund(Reservation(7.5), 0.0)
    assert bucket.tokens == 0


def test_fraction_of_token_is_not_due_in_past() -> None:
    bucket = TokenBucket(rate=1, burst=2)
    assert [bucket.reserve(0.0).due_at for _ in range(2)] == [0.0, 0.0]
    assert bucket.reserve(1.5).due_at == 1.5


def test_backward_clock_changes_nothing() -> None:
    bucket = TokenBucket(rate=1, burst=2)
    assert bucket.reserve(10.0).due_at == 10.0
    assert bucket.try_take(5.0), "nothing was lost"
    assert bucket.reserve(5.0).due_at == 11.0
    assert bucket.tokens == -1


def test_refunds_with_gaps_leave_no_debt() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    first, _, third = [bucket.reserve(0.0) for _ in range(4)][1:]
    bucket.refund(first, 0.5)
    bucket.refund(third, 0.5)
    assert bucket.try_take(3.5)


def test_latest_reservation_is_refunded_once() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    latest = [bucket.reserve(0.0) for _ in range(3)][-1]
    for _ in range(3):
        bucket.refund(latest, 0.0)
        assert bucket.tokens == -1


def test_expired_gap_is_lost() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    first = [bucket.reserve(0.0) for _ in range(4)][1]
    bucket.refund(first, 0.5)
    assert bucket.reserve(1.5).due_at == 4.0


def test_infinite_reservation_means_latest() -> None:
    bucket = TokenBucket(rate=1, burst=2)
    for expected in (1, 0, -1):
        bucket.reserve(0.0)
        assert bucket.tokens == expected
    for expected in (0, 1, 2, 2):
        bucket.refund(Reservation(math.inf), 0.0)
        assert bucket.tokens == expected
    assert [bucket.reserve(0.0).due_at for _ in range(3)] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "numbers",
    [
        {"rate": 0, "burst": 1},
        {"rate": math.inf, "burst": 1},
        {"rate": 1, "burst": 0},
        {"rate": 1, "burst": 0.5},
        {"rate": 1, "burst": math.inf},
    ],
)
def test_invalid_bucket_is_rejected(numbers: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"TokenBucket\."):
        TokenBucket(**numbers)


def test_repr() -> None:
    assert repr(TokenBucket(rate=0.5, burst=3)) == "<TokenBucket 3.00 of 3, 0.5/s>"


@given(st.integers(1, 20), st.integers(1, 5), st.lists(st.floats(0, 3), max_size=30))
def test_bucket_without_refunds_matches_model(rate: int, burst: int, pauses: list[float]) -> None:
    """The model: the n-th token of a full bucket comes no earlier than the moment that the tokens before it allow."""
    bucket, now, row = TokenBucket(rate=rate, burst=burst), 0.0, list[float]()
    for pause in pauses:
        now += pause
        # The same limit as a queue: moments 1/rate apart, each at most (burst - 1)/rate ahead of its own time.
        moment = max(now - (burst - 1) / rate, row[-1] + 1 / rate) if row else now - (burst - 1) / rate
        row.append(moment)
        assert bucket.reserve(now).due_at == pytest.approx(max(now, moment))


class BucketMachine(RuleBasedStateMachine):
    """Reserves, gives back and lets time pass; what counts is when tokens were really used."""

    make = TokenBucket

    @initialize(rate=st.sampled_from([1, 2, 4]), burst=st.integers(1, 4))
    def start(self, rate: int, burst: int) -> None:
        self.bucket = self.make(rate=rate, burst=burst)
        self.now = 0.0
        self.waiting: list[Reservation] = []
        self.used: list[float] = []

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0, 4.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.use()

    @rule(times=st.integers(1, 4))
    def reserve(self, times: int) -> None:
        for _ in range(times):
            reservation = self.bucket.reserve(self.now)
            assert reservation.due_at >= self.now
            self.waiting.append(reservation)
        self.use()

    @rule()
    def take(self) -> None:
        if self.bucket.try_take(self.now):
            self.used.append(self.now)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def refund(self, data: st.DataObject) -> None:
        reservation = data.draw(st.sampled_from(self.waiting))
        self.waiting.remove(reservation)
        self.bucket.refund(reservation, self.now)

    @precondition(lambda self: self.waiting)
    @rule()
    def give_all_back(self) -> None:
        for reservation in self.waiting:
            self.bucket.refund(reservation, self.now)
        self.waiting = []
        assert self.bucket.tokens >= -1e-9

    @invariant()
    def no_stretch_of_time_has_more_than_its_share(self) -> None:
        if not hasattr(self, "bucket"):
            return
        moments = sorted(self.used + [reservation.due_at for reservation in self.waiting])
        for begin in range(len(moments)):
            for end in range(begin, len(moments)):
                allowed = self.bucket.burst + self.bucket.rate * (moments[end] - moments[begin])
                assert end - begin + 1 <= allowed + 1e-6
        assert self.bucket.tokens <= self.bucket.burst

    def use(self) -> None:
        self.used += [reservation.due_at for reservation in self.waiting if reservation.due_at <= self.now]
        self.waiting = [reservation for reservation in self.waiting if reservation.due_at > self.now]


BucketMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=25)
TestBucket = BucketMachine.TestCase


class AddsTheTokenBack:
    """A seeded bug: what is given back becomes a token at once, whatever was promised after it."""

    def __init__(self, *, rate: float, burst: int) -> None:
        self._bucket = TokenBucket(rate=rate, burst=burst)
        self.rate, self.burst = rate, burst
        self.reserve, self.try_take = self._bucket.reserve, self._bucket.try_take

    @property
    def tokens(self) -> float:
        return self._bucket.tokens

    def refund(self, reservation: Reservation, now: float) -> None:
        if reservation.due_at > now:
            self._bucket.refund(Reservation(math.inf), now)


class NeverGivesBack(AddsTheTokenBack):
    """A seeded bug, and upstream's behaviour: the debt stays."""

    def refund(self, reservation: Reservation, now: float) -> None:
        del reservation, now


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", [AddsTheTokenBack, NeverGivesBack])
def test_machine_detects_seeded_bugs(mutant: Any) -> None:
    machine: Any = type("Mutant", (BucketMachine,), {"make": mutant})
    quick = settings(
        max_examples=200,
        stateful_step_count=25,
        database=None,
        phases=[Phase.generate],
        derandomize=True,
    )
    with pytest.raises((AssertionError, HypothesisException)):
        run_state_machine_as_test(machine, settings=quick)
