"""Rate limiters, which return the delay before an item is retried. They are not thread-safe.

If an add has no effect, limiters with ``refund(item)`` get the token of their shared budget back. client-go keeps such
tokens, so delays grow to hours (kubernetes issue 104554).

Source: client-go util/workqueue/default_rate_limiters.go.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar, final, runtime_checkable

from deltaloop._internal.pacing import Reservation, TokenBucket, jitter
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop._internal.root_error import InvalidArgumentError

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", contravariant=True)

_LARGEST_EXPONENT = 1023


class RateLimiter(Protocol[K_contra]):
    """Source of the delays before items are added again."""

    def when(self, item: K_contra, *, error: BaseException | None = None) -> float:
        """Count a failure of an item, and return its delay in seconds.

        Args:
            item: Failed item.
            error: Error of the last run, for limiters that distinguish errors, or None if unknown.
        """
        ...

    def forget(self, item: K_contra) -> None:
        """Reset an item, for example after a success.

        Unknown items are ignored.
        """
        ...

    def num_requeues(self, item: K_contra) -> int:
        """Return the number of ``when(item)`` calls since the last ``forget(item)``, or 0 if it is not counted."""
        ...


@runtime_checkable
class RefundableRateLimiter(Protocol[K_contra]):
    """Rate limiter with a budget that all items share."""

    def refund(self, item: K_contra) -> None:
        """Return the unused budget of an earlier ``when(item)``."""
        ...


def taker_back(limiter: RateLimiter[K]) -> RefundableRateLimiter[K] | None:
    """Return the limiter if it supports refunds, otherwise None."""
    return limiter if isinstance(limiter, RefundableRateLimiter) else None


class _FailureCounter:
    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def _count(self, item: Hashable) -> int:
        before = self._counts.get(item, 0)
        self._counts[item] = before + 1
        return before

    def forget(self, item: Hashable) -> None:
        """Reset the item."""
        self._counts.pop(item, None)

    def num_requeues(self, item: Hashable) -> int:
        """Return the number of failures since the last ``forget``."""
        return self._counts.get(item, 0)


@final
class ItemExponentialFailureRateLimiter(_FailureCounter):
    """Rate limiter that doubles the delay with each failure: ``base_delay * 2**failures``, at most ``max_delay``."""

    def __init__(self, base_delay: float = 0.005, max_delay: float = 1000.0) -> None:
        """Create a limiter with the first and the longest delay in seconds.

        Raises:
            InvalidArgumentError: If a delay is not a finite number greater than zero.
        """
        require_positive("ItemExponentialFailureRateLimiter", base_delay=base_delay, max_delay=max_delay)
        self._base_delay = base_delay
        super().__init__()
        self._max_delay = max_delay

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:  # noqa: ARG002
        """Return the next delay of the item.

        It never overflows.
        """
        exponent = min(self._count(item), _LARGEST_EXPONENT)
        return min(self._base_delay * 2.0**exponent, self._max_delay)


@final
class ItemFastSlowRateLimiter(_FailureCounter):
    """Rate limiter with ``fast_delay`` for the first ``max_fast_attempts`` retries, then ``slow_delay``.

    Only ``forget`` resets an item; time does not.
    """

    def __init__(self, fast_delay: float, slow_delay: float, *, max_fast_attempts: int) -> None:
        """Create a limiter with the two delays in seconds and the number of fast retries.

        Raises:
            InvalidArgumentError: If an argument is negative or not finite.
        """
        require_not_negative(
            "ItemFastSlowRateLimiter",
            fast_delay=fast_delay,
            slow_delay=slow_delay,
            max_fast_attempts=max_fast_attempts,
        )
        self._fast_delay = fast_delay
        self._slow_delay = slow_delay
        super().__init__()
        self._max_fast_attempts = max_fast_attempts

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:  # noqa: ARG002
        """Return the fast or the slow delay."""
        return self._fast_delay if self._count(item) < self._max_fast_attempts else self._slow_delay


@final
class BucketRateLimiter:
    """Rate limiter that admits all items together at ``qps`` per second, after a burst.

    ``when`` never blocks. It takes a token, on credit if necessary, and returns the time until the token is available.
    """

    def __init__(self, *, clock: Callable[[], float], qps: float = 10.0, burst: int = 100) -> None:
        """Create a full bucket.

        Args:
            clock: Function that returns the time in seconds, such as ``time.monotonic`` or an event loop's ``time``.
            qps: Tokens added per second.
            burst: Capacity of the bucket.

        Raises:
            InvalidArgumentError: If ``qps`` or ``burst`` is not greater than zero.
        """
        self._clock = clock
        self._bucket = TokenBucket(rate=qps, burst=burst)

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:  # noqa: ARG002
        """Take a token, and return the seconds until it is available."""
        now = self._clock()
        return self._bucket.reserve(now).delay(now)

    def forget(self, item: Hashable) -> None:
        """Do nothing, because a bucket does not distinguish items."""

    def num_requeues(self, item: Hashable) -> int:  # noqa: ARG002
        """Return 0, because a bucket does not distinguish items."""
        return 0

    def refund(self, item: Hashable) -> None:  # noqa: ARG002
        """Return the token of an add without effect.

        All tokens are equal, so any token can be returned. A token that was available immediately was not used either,
        so its due time is infinite for the bucket.
        """
        self._bucket.refund(Reservation(due_at=math.inf), self._clock())


@final
class MaxOfRateLimiter(Generic[K]):
    """Rate limiter that returns the longest delay of several limiters.

    All of them count each call.
    """

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        """Combine limiters.

        Raises:
            InvalidArgumentError: If there are no limiters.
        """
        if not limiters:
            raise InvalidArgumentError("must have at least one limiter.", argument="MaxOfRateLimiter")
        self._limiters: tuple[RateLimiter[K], ...] = limiters

    def when(self, item: K, *, error: BaseException | None = None) -> float:
        """Return the longest delay."""
        return max([limiter.when(item, error=error) for limiter in self._limiters])

    def forget(self, item: K) -> None:
        """Reset the item in all limiters."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the highest count."""
        return max(limiter.num_requeues(item) for limiter in self._limiters)

    def refund(self, item: K) -> None:
        """Refund all limiters that support it."""
        for limiter in self._limiters:
            takes_back = taker_back(limiter)
            if takes_back is not None:
                takes_back.refund(item)


class _AroundRateLimiter(Generic[K]):
    def __init__(self, limiter: RateLimiter[K]) -> None:
        self._limiter = limiter

    def forget(self, item: K) -> None:
        """Reset the item in the limiter."""
        self._limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the limiter's count."""
        return self._limiter.num_requeues(item)

    def refund(self, item: K) -> None:
        """Refund the limiter if it supports it."""
        takes_back = taker_back(self._limiter)
        if takes_back is not None:
            takes_back.refund(item)


@final
class WithMaxWaitRateLimiter(_AroundRateLimiter[K]):
    """Rate limiter that caps the delays of another limiter at ``max_delay``."""

    def __init__(self, limiter: RateLimiter[K], *, max_delay: float) -> None:
        """Create a limiter with the longest delay in seconds.

        Raises:
            InvalidArgumentError: If ``max_delay`` is negative or not finite.
        """
        require_not_negative("WithMaxWaitRateLimiter", max_delay=max_delay)
        super().__init__(limiter)
        self._max_delay = max_delay

    def when(self, item: K, *, error: BaseException | None = None) -> float:
        """Return the limiter's delay, at most ``max_delay``."""
        return min(self._limiter.when(item, error=error), self._max_delay)


@final
class WithJitterRateLimiter(_AroundRateLimiter[K]):
    """Rate limiter that adds a random delay of up to ``factor`` times the delay, to spread simultaneous retries.

    Apply it to other limiters, but inside of a ``WithMaxWaitRateLimiter`` if the maximum must not be exceeded.
    """

    def __init__(self, limiter: RateLimiter[K], *, factor: float, random: Callable[[], float]) -> None:
        """Create a limiter with jitter.

        Args:
            limiter: Limiter whose delays are extended.
            factor: Largest extension relative to the delay, for example 0.1 for 10 %.
            random: Function that returns random numbers in [0, 1), such as ``random.random``.

        Raises:
            InvalidArgumentError: If ``factor`` is negative or not finite.
        """
        require_not_negative("WithJitterRateLimiter", factor=factor)
        super().__init__(limiter)
        self._factor = factor
        self._random = random

    def when(self, item: K, *, error: BaseException | None = None) -> float:
        """Return the extended delay.

        A finite delay stays finite.
        """
        delay = self._limiter.when(item, error=error)
        if not math.isfinite(delay):
            return delay  # the queue rejects it
        return min(jitter(delay, self._factor, random=self._random()), sys.float_info.max)


ErrorMatch: TypeAlias = "type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], bool]"
"""Errors of a rule: a type, several types, or a function that returns whether an error matches."""


@final
class ByErrorRateLimiter(Generic[K]):
    """Rate limiter that selects a limiter by error: the first matching rule, otherwise the default.

    Each limiter counts separately, so for example conflicts do not increase the delays after timeouts. ``forget``
    resets all limiters.

    A refund goes to the limiter that supplied the token. If several limiters were used for the item since ``forget``,
    the source is unknown, and the token is lost, which only makes retries slower.
    """

    def __init__(self, rules: Sequence[tuple[ErrorMatch, RateLimiter[K] | float]], *, default: RateLimiter[K]) -> None:
        """Create a limiter with rules, in order of precedence.

        Args:
            rules: Errors, and their limiter or a fixed delay in seconds.
            default: Limiter for other errors, and for adds without an error.

        Raises:
            InvalidArgumentError: If a fixed delay is negative or not finite.
        """
        self._rules: list[tuple[ErrorMatch, RateLimiter[K]]] = []
        for match, answer in rules:
            limiter: RateLimiter[K]
            if isinstance(answer, int | float):
                limiter = ItemFastSlowRateLimiter(answer, answer, max_fast_attempts=0)
            else:
                limiter = answer
            self._rules.append((match, limiter))
        self._default = default
        self._asked: dict[K, int] = {}
        self._asked_of: dict[K, list[RateLimiter[K]]] = {}

    def when(self, item: K, *, error: BaseException | None = None) -> float:
        """Return the delay of the limiter for the error."""
        limiter = self._limiter_for(error)
        delay = limiter.when(item, error=error)
        self._asked[item] = self._asked.get(item, 0) + 1
        known = self._asked_of.setdefault(item, [])
        if not any(limiter is other for other in known):
            known.append(limiter)
        return delay

    def _limiter_for(self, error: BaseException | None) -> RateLimiter[K]:
        if error is not None:
            for match, limiter in self._rules:
                if _matches(match, error):
                    return limiter
        return self._default

    def forget(self, item: K) -> None:
        """Reset the item in all limiters."""
        self._asked.pop(item, None)
        self._asked_of.pop(item, None)
        for limiter in [*(limiter for _, limiter in self._rules), self._default]:
            limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the number of calls for all errors."""
        return self._asked.get(item, 0)

    def refund(self, item: K) -> None:
        """Refund the limiter of the item, if only one was used."""
        known = self._asked_of.get(item, [])
        takes_back = taker_back(known[0]) if len(known) == 1 else None
        if takes_back is not None:
            takes_back.refund(item)


def _matches(match: ErrorMatch, error: BaseException) -> bool:
    if isinstance(match, type | tuple):
        return isinstance(error, match)
    return match(error)


def default_controller_rate_limiter(*, clock: Callable[[], float]) -> MaxOfRateLimiter[Hashable]:
    """Return a limiter with client-go's defaults: 5 ms to 1000 s per item, and 10 per second (burst 100) in total.

    Args:
        clock: Function that returns the time in seconds. A queue that creates its own limiter passes its own clock.

    Source: client-go util/workqueue ``DefaultTypedControllerRateLimiter``.
    """
    return MaxOfRateLimiter[Hashable](ItemExponentialFailureRateLimiter(), BucketRateLimiter(clock=clock))
