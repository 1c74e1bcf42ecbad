"""Each limiter's numbers are upstream's."""

from __future__ import annotations

import math
from collections.abc import Hashable

import pytest

from deltaloop.workqueue import (
    BucketRateLimiter,
    ByErrorRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    RefundableRateLimiter,
    WithJitterRateLimiter,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
)
from deltaloop.workqueue.core.limiters import taker_back
from tests.having import having


class Clock:
    """A clock that stands still unless told otherwise."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def sequence(limiter: RateLimiter[Hashable], item: str, count: int) -> list[float]:
    return [limiter.when(item) for _ in range(count)]


def test_exponential_doubles_for_each_item_and_forgets() -> None:
    limiter = ItemExponentialFailureRateLimiter(0.001, 1.0)
    assert sequence(limiter, "one", 5) == [0.001, 0.002, 0.004, 0.008, 0.016]
    assert limiter.num_requeues("one") == 5
    assert sequence(limiter, "two", 2) == [0.001, 0.002]
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert sequence(limiter, "one", 1) == [0.001]
    limiter.forget("never seen")


def test_exponential_default_goes_from_5_ms_to_1000_s() -> None:
    delays = sequence(ItemExponentialFailureRateLimiter(), "a", 20)
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[17] == pytest.approx(655.36)
    assert delays[18:] == [1000.0, 1000.0]


@pytest.mark.parametrize(("base", "longest"), [(0.001, 1000.0), (1e-300, 1e300), (1.0, 1.7e308), (60.0, 1.0)])
def test_exponential_never_overflows(base: float, longest: float) -> None:
    limiter = ItemExponentialFailureRateLimiter(base, longest)
    delays = sequence(limiter, "a", 3000)
    assert all(0 < delay <= longest and math.isfinite(delay) for delay in delays)
    assert delays == sorted(delays)
    assert limiter.num_requeues("a") == 3000


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_invalid_exponential_delays_are_rejected(bad: float) -> None:
    with pytest.raises(ValueError, check=having(argument="ItemExponentialFailureRateLimiter.base_delay")):
        ItemExponentialFailureRateLimiter(bad, 1.0)
    with pytest.raises(ValueError, check=having(argument="ItemExponentialFailureRateLimiter.max_delay")):
        ItemExponentialFailureRateLimiter(1.0, bad)


def test_fast_slow_is_fast_for_limited_attempts() -> None:
    limiter = ItemFastSlowRateLimiter(0.005, 10.0, max_fast_attempts=3)
    assert sequence(limiter, "one", 5) == [0.005, 0.005, 0.005, 10.0, 10.0]
    assert limiter.num_requeues("one") == 5
    assert sequence(limiter, "two", 1) == [0.005]
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert sequence(limiter, "one", 1) == [0.005]


def test_fast_slow_rejects_negative_numbers() -> None:
    for numbers in [(-1.0, 1.0, 1), (1.0, math.nan, 1), (1.0, 1.0, -1)]:
        with pytest.raises(ValueError, match="ItemFastSlowRateLimiter"):
            ItemFastSlowRateLimiter(numbers[0], numbers[1], max_fast_attempts=numbers[2])


def test_bucket_allows_burst_and_then_rate() -> None:
    clock = Clock()
    limiter = BucketRateLimiter(clock=clock, qps=10.0, burst=3)
    assert sequence(limiter, "a", 5) == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2])
    clock.now = 0.2
    assert limiter.when("b") == pytest.approx(0.1)
    clock.now = 60.0
    assert sequence(limiter, "a", 4) == pytest.approx([0.0, 0.0, 0.0, 0.1])
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0


def test_bucket_accepts_refunds() -> None:
    clock = Clock()
    limiter = BucketRateLimiter(clock=clock, qps=1.0, burst=2)
    for _ in range(1000):  # covered tokens, also long after they were taken
        assert limiter.when("a") == 0.0
        clock.now += 1e-6
        limiter.refund("a")
    assert sequence(limiter, "a", 4) == pytest.approx([0.0, 0.0, 1.0, 2.0], abs=0.01)
    limiter.refund("a")  # tokens on credit
    assert limiter.when("b") == pytest.approx(2.0, abs=0.01)
    for _ in range(10):
        limiter.refund("a")
    assert sequence(limiter, "a", 3) == pytest.approx([0.0, 0.0, 1.0], abs=0.01)  # never more than the burst


def test_max_of_returns_longest_delay_and_counts_in_all_limiters() -> None:
    fast = ItemFastSlowRateLimiter(0.005, 3.0, max_fast_attempts=3)
    exponential = ItemExponentialFailureRateLimiter(0.001, 1000.0)
    limiter = MaxOfRateLimiter[Hashable](fast, exponential)
    assert sequence(limiter, "one", 5) == [0.005, 0.005, 0.005, 3.0, 3.0]
    assert limiter.num_requeues("one") == exponential.num_requeues("one") == 5
    limiter.forget("one")
    assert limiter.num_requeues("one") == fast.num_requeues("one") == 0
    assert limiter.when("one") == 0.005
    limiter.refund("one")  # nobody to tell
    with pytest.raises(ValueError, check=having(argument="MaxOfRateLimiter")):
        MaxOfRateLimiter[str]()


def test_max_wait_limits_wrapped_limiter() -> None:
    clock = Clock()
    limiter = WithMaxWaitRateLimiter(ItemExponentialFailureRateLimiter(0.001, 1000.0), max_delay=0.005)
    assert sequence(limiter, "one", 5) == [0.001, 0.002, 0.004, 0.005, 0.005]
    assert limiter.num_requeues("one") == 5
    limiter.forget("one")
    limiter.refund("one")  # nobody to tell
    assert sequence(limiter, "one", 1) == [0.001]
    bucket = BucketRateLimiter(clock=clock, qps=1.0, burst=1)
    bounded = WithMaxWaitRateLimiter(MaxOfRateLimiter[Hashable](bucket), max_delay=5.0)
    assert sequence(bounded, "a", 3) == [0.0, 1.0, 2.0]
    bounded.refund("a")
    assert bounded.when("a") == 2.0
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, check=having(argument="WithMaxWaitRateLimiter.max_delay")):
            WithMaxWaitRateLimiter(bucket, max_delay=bad)


def test_default_controller_limiter_has_delays_of_client_go() -> None:
    clock = Clock()
    limiter = default_controller_rate_limiter(clock=clock)
    assert sequence(limiter, "a", 4) == [0.005, 0.01, 0.02, 0.04]
    assert [limiter.when(str(n)) for n in range(96)] == [0.005] * 96
    assert limiter.when("b") == pytest.approx(0.1)  # the 101st token
    assert limiter.when("c") == pytest.approx(0.2)
    limiter.refund("c")
    assert limiter.when("d") == pytest.approx(0.2)
    assert limiter.num_requeues("a") == 4


def test_all_limiters_accept_error() -> None:
    limiter = MaxOfRateLimiter[Hashable](
        ItemExponentialFailureRateLimiter(1.0),
        ItemFastSlowRateLimiter(1.0, 2.0, max_fast_attempts=1),
        BucketRateLimiter(clock=Clock()),
    )
    assert limiter.when("a", error=KeyError("a")) == 1.0


def test_refundable_limiters_are_recognized() -> None:
    assert isinstance(BucketRateLimiter(clock=Clock()), RefundableRateLimiter)
    assert not isinstance(ItemExponentialFailureRateLimiter(), RefundableRateLimiter)


class Asked:
    """Writes down what it is asked, and answers zero."""

    def __init__(self) -> None:
        self.errors: list[BaseException | None] = []
        self.given_back = 0

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:
        self.errors.append(error)
        return 0.0

    def forget(self, item: Hashable) -> None:
        """Remember nothing."""

    def num_requeues(self, item: Hashable) -> int:
        return len(self.errors)

    def refund(self, item: Hashable) -> None:
        self.given_back += 1


def around(inner: Asked) -> list[RateLimiter[Hashable]]:
    return [
        MaxOfRateLimiter[Hashable](inner),
        WithMaxWaitRateLimiter[Hashable](inner, max_delay=1.0),
        WithJitterRateLimiter[Hashable](inner, factor=0.5, random=lambda: 0.5),
        ByErrorRateLimiter[Hashable]([(KeyError, inner)], default=inner),
    ]


@pytest.mark.parametrize("number", range(4))
def test_wrapped_limiter_receives_error(number: int) -> None:
    inner = Asked()
    limiter, error = around(inner)[number], KeyError("x")
    limiter.when("a", error=error)
    limiter.when("a")
    assert inner.errors == [error, None]
    takes_back = taker_back(limiter)
    assert takes_back is not None
    takes_back.refund("a")
    assert inner.given_back == 1, "it was one limiter that was asked, however often"


def test_negative_max_delay_is_rejected() -> None:
    with pytest.raises(ValueError, check=having(argument="WithMaxWaitRateLimiter.max_delay")):
        WithMaxWaitRateLimiter[Hashable](Asked(), max_delay=-1.0)
