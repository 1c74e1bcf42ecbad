"""Each limiter's answers, number by number, as upstream's tests and constants have them; and hostile numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import pytest

from deltaloop.workqueue import (
    BucketRateLimiter,
    ByErrorRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithJitterRateLimiter,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
)
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from tests.having import having

Limiter = RateLimiter[Hashable]
MS = 0.001


def stopped() -> float:
    return 0.0


def bucket(qps: float, burst: int) -> BucketRateLimiter:
    return BucketRateLimiter(clock=stopped, qps=qps, burst=burst)


@dataclass
class Fixed:
    """Always answers the same."""

    delay: float

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:
        return self.delay

    def forget(self, item: Hashable) -> None:
        """Remember nothing."""

    def num_requeues(self, item: Hashable) -> int:
        return 0


TABLE: list[tuple[str, Callable[[], Limiter], list[float]]] = [
    (
        "exponential, upstream's test",
        lambda: ItemExponentialFailureRateLimiter(1 * MS, 1.0),
        [1 * MS, 2 * MS, 4 * MS, 8 * MS, 16 * MS],
    ),
    (
        "exponential, upstream's controller default",
        ItemExponentialFailureRateLimiter,
        [*[5 * MS * 2**n for n in range(18)], 1000.0, 1000.0],
    ),
    (
        "exponential, upstream's item default",
        lambda: ItemExponentialFailureRateLimiter(1 * MS, 1000.0),
        [*[1 * MS * 2**n for n in range(20)], 1000.0, 1000.0],
    ),
    (
        "fast and slow, upstream's test",
        lambda: ItemFastSlowRateLimiter(5 * MS, 10.0, max_fast_attempts=3),
        [5 * MS, 5 * MS, 5 * MS, 10.0, 10.0],
    ),
    (
        "the longest, upstream's test",
        lambda: MaxOfRateLimiter[Hashable](
            ItemFastSlowRateLimiter(5 * MS, 3.0, max_fast_attempts=3), ItemExponentialFailureRateLimiter(1 * MS, 1000.0)
        ),
        [5 * MS, 5 * MS, 5 * MS, 3.0, 3.0],
    ),
    (
        "bounded, upstream's test",
        lambda: WithMaxWaitRateLimiter[Hashable](ItemExponentialFailureRateLimiter(1 * MS, 1000.0), max_delay=5 * MS),
        [1 * MS, 2 * MS, 4 * MS, 5 * MS, 5 * MS],
    ),
    ("bucket", lambda: bucket(10.0, 3), [0.0, 0.0, 0.0, 0.1, 0.2, 0.3]),
    (
        "controller default: 1000 s at most, 10 a second after 100",
        lambda: default_controller_rate_limiter(clock=stopped),
        [*[5 * MS * 2**n for n in range(18)], *[1000.0] * 90],
    ),
    (
        "jitter at half of its chance",
        lambda: WithJitterRateLimiter[Hashable](
            ItemExponentialFailureRateLimiter(1.0, 8.0), factor=0.1, random=lambda: 0.5
        ),
        [1.05, 2.1, 4.2, 8.4, 8.4],
    ),
    (
        "no jitter",
        lambda: WithJitterRateLimiter[Hashable](ItemExponentialFailureRateLimiter(1.0), factor=0.0, random=stopped),
        [1.0, 2.0, 4.0],
    ),
]


@pytest.mark.parametrize(("make", "expected"), [pytest.param(make, row, id=name) for name, make, row in TABLE])
def test_delays_equal_delays_of_client_go(make: Callable[[], Limiter], expected: list[float]) -> None:
    limiter = make()
    assert [limiter.when("one") for _ in expected] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make, _ in TABLE])
def test_delays_stay_finite_and_nonnegative(make: Callable[[], Limiter]) -> None:
    limiter = make()
    answers = [limiter.when("one") for _ in range(5000)]
    assert all(0.0 <= answer < math.inf for answer in answers)
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0


@pytest.mark.parametrize(
    ("answer", "delay"),
    [
        (-math.inf, None),
        (-1e308, 0.0),
        (-1.0, 0.0),
        (-0.0, 0.0),
        (0.0, 0.0),
        (5e-324, 5e-324),
        (1e-9, 1e-9),
        (1.0, 1.0),
        (1e12, 1e12),
        (sys.float_info.max, sys.float_info.max),
        (math.inf, None),
        (math.nan, None),
    ],
)
def test_queue_validates_delay_of_limiter(answer: float, delay: float | None) -> None:
    """None: refused. Zero or less: at once. Everything else is a delay, however long."""
    core = RateLimitingCore[str](limiter=Fixed(answer))
    if delay is None:
        with pytest.raises(ValueError, check=having(argument="delay")):
            core.add_rate_limited("a", 0.0)
        return
    core.add_rate_limited("a", 0.0)
    assert len(core) == (delay == 0.0)
    assert core.next_due_at() == (delay or None)


@pytest.mark.parametrize(("answer", "expected"), [(1.7e308, sys.float_info.max), (math.inf, math.inf), (-1.0, -1.5)])
def test_jitter_keeps_delay_finite(answer: float, expected: float) -> None:
    limiter = WithJitterRateLimiter[Hashable](Fixed(answer), factor=1.0, random=lambda: 0.5)
    assert limiter.when("a") == expected


@pytest.mark.parametrize("factor", [-0.1, math.nan, math.inf])
def test_invalid_jitter_factor_is_rejected(factor: float) -> None:
    with pytest.raises(ValueError, check=having(argument="WithJitterRateLimiter.factor")):
        WithJitterRateLimiter[Hashable](Fixed(1.0), factor=factor, random=stopped)


def test_jitter_delegates_other_methods() -> None:
    limiter = WithJitterRateLimiter[Hashable](
        MaxOfRateLimiter[Hashable](bucket(1.0, 1), ItemFastSlowRateLimiter(0.0, 0.0, max_fast_attempts=0)),
        factor=1.0,
        random=stopped,
    )
    assert [limiter.when("a"), limiter.when("a")] == [0.0, 1.0]
    limiter.refund("a")
    assert limiter.when("a") == 1.0
    assert limiter.num_requeues("a") == 3
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0


# -- by the kind of the error


class ConflictError(Exception):
    """Somebody else wrote first."""


class TooManyRequestsError(Exception):
    """The server is busy."""


def by_error() -> ByErrorRateLimiter[str]:
    """Timeouts soon, conflicts later, a busy server much later, and the rest ever later."""
    return ByErrorRateLimiter[str](
        [
            (TimeoutError, 0.1),
            ((ConflictError, FileExistsError), 1),
            (lambda error: "busy" in str(error), ItemFastSlowRateLimiter(30.0, 60.0, max_fast_attempts=1)),
        ],
        default=ItemExponentialFailureRateLimiter(0.1, 1000.0),
    )


def test_delay_depends_on_error() -> None:
    limiter = by_error()
    errors = [
        TimeoutError(),
        KeyError("x"),
        ConflictError(),
        FileExistsError(),
        KeyError("x"),
        TooManyRequestsError("busy"),
        TooManyRequestsError("busy"),
        TimeoutError("busy"),  # the first rule that matches
        None,
    ]
    answers = [limiter.when("a", error=error) for error in errors]
    assert answers == [0.1, 0.1, 1.0, 1.0, 0.2, 30.0, 60.0, 0.1, 0.4]
    assert limiter.num_requeues("a") == len(errors)
    assert limiter.when("b", error=KeyError("x")) == 0.1
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
    assert limiter.when("a", error=TooManyRequestsError("busy")) == 30.0
    assert limiter.when("a") == 0.1


def test_token_is_refunded_only_to_its_known_source() -> None:
    first, second = bucket(1.0, 1), bucket(1.0, 1)
    limiter = ByErrorRateLimiter[str]([(TimeoutError, first), (ConflictError, 5.0)], default=second)
    assert limiter.when("a", error=TimeoutError()) == 0.0
    limiter.refund("a")
    assert limiter.when("a", error=TimeoutError()) == 0.0
    assert limiter.when("a", error=ConflictError()) == 5.0
    limiter.refund("a")  # of the fixed delay or of the bucket?
    assert limiter.when("b", error=TimeoutError()) == 1.0
    limiter.refund("never seen")
    assert limiter.when("c") == 0.0


def test_invalid_fixed_delay_is_rejected() -> None:
    with pytest.raises(ValueError, check=having(argument="ItemFastSlowRateLimiter.fast_delay")):
        ByErrorRateLimiter[str]([(TimeoutError, -1.0)], default=ItemExponentialFailureRateLimiter())
