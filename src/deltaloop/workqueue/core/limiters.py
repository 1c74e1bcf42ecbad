"""How long an item has to wait before it is tried again.

A rate limiter answers ``when(item)`` in seconds and remembers that it was asked; ``forget(item)`` makes it remember no
more. Limiters are not safe for use from several threads: the queue asks its limiter under its own lock, so give each
queue one of its own.

Tokens that were not needed: a queue asks its limiter first and finds out after that whether the add made a difference.
If it made none (the item was waiting already, or waits for an earlier time), a limiter that offers ``refund(item)``
gets back what it took from a budget that items share. It does not touch the count of failures: those did happen.
client-go keeps such tokens, and delays grow to hours (kubernetes issue 104554).

Source: client-go util/workqueue/default_rate_limiters.go.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar, final, runtime_checkable

from deltaloop._internal.pacing import Reservation, TokenBucket, jitter
from deltaloop._internal.pacing.checks import require_not_negative, require_positive

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", contravariant=True)

_LARGEST_EXPONENT = 1023


class RateLimiter(Protocol[K_contra]):
    """Says how long an item waits before it is added again."""

    def when(self, item: K_contra, *, error: BaseException | None = None) -> float:
        """Return the seconds that ``item`` waits this time, and count that it was asked.

        Args:
            item: The item that failed.
            error: Why its last run failed, for limiters that tell errors apart; None if that is not known.
        """
        ...

    def forget(self, item: K_contra) -> None:
        """Begin again with ``item``, as after a success.

        Forgetting an unknown item does nothing.
        """
        ...

    def num_requeues(self, item: K_contra) -> int:
        """Return how often ``when(item)`` was asked since the last ``forget(item)``; 0 if that is not counted."""
        ...


@runtime_checkable
class RefundableRateLimiter(Protocol[K_contra]):
    """Offered by limiters with a budget that items share."""

    def refund(self, item: K_contra) -> None:
        """Hear that what one earlier ``when(item)`` took was not needed."""
        ...


def taker_back(limiter: RateLimiter[K]) -> RefundableRateLimiter[K] | None:
    """Return the limiter as one that takes tokens back, if it is one."""
    return limiter if isinstance(limiter, RefundableRateLimiter) else None


class _Failures:
    """How often each item was asked about."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def count(self, item: Hashable) -> int:
        """Count one more; return how many there were before."""
        before = self._counts.get(item, 0)
        self._counts[item] = before + 1
        return before

    def forget(self, item: Hashable) -> None:
        self._counts.pop(item, None)

    def of(self, item: Hashable) -> int:
        return self._counts.get(item, 0)


@final
class ItemExponentialFailureRateLimiter:
    """Doubles an item's delay with each failure: ``base_delay * 2**failures``, at most ``max_delay``."""

    def __init__(self, base_delay: float = 0.005, max_delay: float = 1000.0) -> None:
        """Take the first and the longest delay in seconds.

        Raises:
            ValueError: If one of them is not a finite number greater than zero.
        """
        require_positive("ItemExponentialFailureRateLimiter", base_delay=base_delay, max_delay=max_delay)
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._failures = _Failures()

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:  # noqa: ARG002  # the protocol's
        """Return the next delay of the item; there is no number of failures for which it overflows."""
        exponent = min(self._failures.count(item), _LARGEST_EXPONENT)
        return min(self._base_delay * 2.0**exponent, self._max_delay)

    def forget(self, item: Hashable) -> None:
        """Begin again at ``base_delay``."""
        self._failures.forget(item)

    def num_requeues(self, item: Hashable) -> int:
        """Return the number of failures since the last ``forget``."""
        return self._failures.of(item)


@final
class ItemFastSlowRateLimiter:
    """Lets an item wait ``fast_delay`` for its first ``max_fast_attempts`` retries, and ``slow_delay`` for the others.

    There is no window of time: only ``forget`` makes an item fast again.
    """

    def __init__(self, fast_delay: float, slow_delay: float, *, max_fast_attempts: int) -> None:
        """Take the two delays in seconds and how many retries are fast.

        Raises:
            ValueError: If one of them is negative or not finite.
        """
        require_not_negative(
            "ItemFastSlowRateLimiter",
            fast_delay=fast_delay,
            slow_delay=slow_delay,
            max_fast_attempts=max_fast_attempts,
        )
        self._fast_delay = fast_delay
        self._slow_delay = slow_delay
        self._max_fast_attempts = max_fast_attempts
        self._failures = _Failures()

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:  # noqa: ARG002  # the protocol's
        """Return the fast or the slow delay."""
        return self._fast_delay if self._failures.count(item) < self._max_fast_attempts else self._slow_delay

    def forget(self, item: Hashable) -> None:
        """Begin again with fast retries."""
        self._failures.forget(item)

    def num_requeues(self, item: Hashable) -> int:
        """Return the number of failures since the last ``forget``."""
        return self._failures.of(item)


@final
class BucketRateLimiter:
    """Lets all items together through at ``qps`` a second, after a burst; an item alone makes no difference.

    A token is taken by ``when``, on credit if there is none, and the delay says when it is covered. ``when`` never
    waits.
    """

    def __init__(self, *, clock: Callable[[], float], qps: float = 10.0, burst: int = 100) -> None:
        """Make a full bucket.

        Args:
            clock: Returns the present time in seconds, as ``time.monotonic`` or an event loop's ``time`` do.
            qps: Tokens gained a second.
            burst: Most tokens that the bucket holds.

        Raises:
            ValueError: If ``qps`` or ``burst`` is not greater than zero.
        """
        self._clock = clock
        self._bucket = TokenBucket(rate=qps, burst=burst)

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:  # noqa: ARG002  # the protocol's
        """Take a token and return the seconds until it is covered."""
        now = self._clock()
        return self._bucket.reserve(now).delay(now)

    def forget(self, item: Hashable) -> None:
        """Do nothing: a bucket knows no items."""

    def num_requeues(self, item: Hashable) -> int:  # noqa: ARG002  # the protocol's
        """Return 0: a bucket knows no items."""
        return 0

    def refund(self, item: Hashable) -> None:  # noqa: ARG002  # the protocol's
        """Put a token back that was taken for an add that made no difference.

        Tokens are alike, so it does not matter which one comes back. One that was covered when it was taken was not
        used either: for the bucket, an unused token is one that never comes due.
        """
        self._bucket.refund(Reservation(due_at=math.inf), self._clock())


@final
class MaxOfRateLimiter(Generic[K]):
    """Asks several limiters and takes the longest delay.

    Each of them counts, also those that answered less.
    """

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        """Take the limiters.

        Raises:
            ValueError: If there is none.
        """
        if not limiters:
            raise ValueError("MaxOfRateLimiter needs at least one limiter")
        self._limiters: tuple[RateLimiter[K], ...] = limiters

    def when(self, item: K, *, error: BaseException | None = None) -> float:
        """Return the longest of all answers."""
        return max([limiter.when(item, error=error) for limiter in self._limiters])

    def forget(self, item: K) -> None:
        """Let all of them begin again."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the highest of their numbers."""
        return max(limiter.num_requeues(item) for limiter in self._limiters)

    def refund(self, item: K) -> None:
        """Tell those that want to know."""
        for limiter in self._limiters:
            takes_back = taker_back(limiter)
            if takes_back is not None:
                takes_back.refund(item)


@final
class WithMaxWaitRateLimiter(Generic[K]):
    """Lets no item wait longer than ``max_delay``, whatever the limiter behind it says."""

    def __init__(self, limiter: RateLimiter[K], *, max_delay: float) -> None:
        """Take the limiter and the longest delay in seconds.

        Raises:
            ValueError: If ``max_delay`` is negative or not finite.
        """
        require_not_negative("WithMaxWaitRateLimiter", max_delay=max_delay)
        self._limiter = limiter
        self._max_delay = max_delay

    def when(self, item: K, *, error: BaseException | None = None) -> float:
        """Return the limiter's answer or ``max_delay``, whichever is shorter."""
        return min(self._limiter.when(item, error=error), self._max_delay)

    def forget(self, item: K) -> None:
        """Let the limiter begin again."""
        self._limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the limiter's number."""
        return self._limiter.num_requeues(item)

    def refund(self, item: K) -> None:
        """Tell the limiter, if it wants to know."""
        takes_back = taker_back(self._limiter)
        if takes_back is not None:
            takes_back.refund(item)


@final
class WithJitterRateLimiter(Generic[K]):
    """Lengthens each delay by up to ``factor`` times itself, so that what failed together does not come back together.

    Put it outside of other limiters, but inside a ``WithMaxWaitRateLimiter`` whose bound has to hold.
    """

    def __init__(self, limiter: RateLimiter[K], *, factor: float, random: Callable[[], float]) -> None:
        """Take the limiter.

        Args:
            limiter: The limiter whose delays are lengthened.
            factor: By which part of itself a delay grows at most; 0.1 means up to a tenth.
            random: Returns a number from 0 up to, but not including, 1, as ``random.random`` does.

        Raises:
            ValueError: If ``factor`` is negative or not finite.
        """
        require_not_negative("WithJitterRateLimiter", factor=factor)
        self._limiter = limiter
        self._factor = factor
        self._random = random

    def when(self, item: K, *, error: BaseException | None = None) -> float:
        """Return the limiter's answer, lengthened; a finite answer stays finite."""
        delay = self._limiter.when(item, error=error)
        if not math.isfinite(delay):
            return delay  # the queue refuses it
        return min(jitter(delay, self._factor, random=self._random()), sys.float_info.max)

    def forget(self, item: K) -> None:
        """Let the limiter begin again."""
        self._limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the limiter's number."""
        return self._limiter.num_requeues(item)

    def refund(self, item: K) -> None:
        """Tell the limiter, if it wants to know."""
        takes_back = taker_back(self._limiter)
        if takes_back is not None:
            takes_back.refund(item)


ErrorMatch: TypeAlias = type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], bool]
"""Which errors a rule is for: a type, several types, or a function that looks at the error."""


@final
class ByErrorRateLimiter(Generic[K]):
    """Asks the limiter that belongs to the error: the first rule that matches it, otherwise the default.

    Each limiter counts what it was asked itself: conflicts do not make the waits after timeouts longer. ``forget``
    clears all of them.

    A token that was not needed goes back to the limiter it came from. If several limiters were asked for the item since
    it was forgotten, nobody can say which one that is, and the token is kept: fewer tries then, not more.
    """

    def __init__(self, rules: Sequence[tuple[ErrorMatch, RateLimiter[K] | float]], *, default: RateLimiter[K]) -> None:
        """Take the rules, in the order in which they are tried.

        Args:
            rules: For which errors, and the limiter to ask or a fixed delay in seconds.
            default: Asked for other errors, and for adds that name no error.

        Raises:
            ValueError: If a fixed delay is negative or not finite.
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
        """Return the answer of the limiter that belongs to the error."""
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
        """Let all limiters begin again."""
        self._asked.pop(item, None)
        self._asked_of.pop(item, None)
        for limiter in [*(limiter for _, limiter in self._rules), self._default]:
            limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return how often it was asked, whatever the errors were."""
        return self._asked.get(item, 0)

    def refund(self, item: K) -> None:
        """Give a token back to the only limiter that it can have come from, if there is just one."""
        known = self._asked_of.get(item, [])
        takes_back = taker_back(known[0]) if len(known) == 1 else None
        if takes_back is not None:
            takes_back.refund(item)


def _matches(match: ErrorMatch, error: BaseException) -> bool:
    if isinstance(match, type | tuple):
        return isinstance(error, match)
    return match(error)


def default_controller_rate_limiter(*, clock: Callable[[], float]) -> MaxOfRateLimiter[Hashable]:
    """Return a new limiter with upstream's numbers: 5 ms to 1000 s for each item, 10 a second (burst 100) for all.

    Args:
        clock: Returns the present time in seconds; the queue that makes its own limiter passes its own clock.

    Source: client-go util/workqueue ``DefaultTypedControllerRateLimiter``.
    """
    return MaxOfRateLimiter[Hashable](ItemExponentialFailureRateLimiter(), BucketRateLimiter(clock=clock))
