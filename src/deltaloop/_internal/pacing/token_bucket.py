"""Token bucket with reservations that can be returned.

The bucket holds at most ``burst`` tokens and gains ``rate`` tokens per second. A reservation takes one token
immediately, on credit if necessary, and contains the time at which it is covered. client-go never returns reservations,
so delays of hours accumulate from deduplicated adds (kubernetes#104554). Here they can be returned:

- Reservations on credit are times in a row with a distance of ``1 / rate``. A returned reservation leaves a gap.
- The next reservation takes the first future gap, so no time is used twice.
- Gaps at the end of the row are removed, which returns their tokens to the bucket.

In any period of ``t`` seconds, at most ``burst + rate * t`` reservations are covered.

Source: golang.org/x/time/rate (``ReserveN``, ``CancelAt``), as used by client-go util/workqueue.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from typing import final

import msgspec

from deltaloop._internal.pacing.checks import require_positive
from deltaloop._internal.root_error import InvalidArgumentError


class Reservation(msgspec.Struct, frozen=True):
    """Reserved token, which is covered from ``due_at`` on."""

    due_at: float

    def delay(self, now: float) -> float:
        """Return the seconds until the token is covered."""
        return max(0.0, self.due_at - now)


@final
class TokenBucket:
    """Token bucket.

    It is not thread-safe.
    """

    __slots__ = ("_gaps", "_row", "_tokens", "_updated_at", "burst", "rate")

    def __init__(self, *, rate: float, burst: int) -> None:
        """Create a full bucket.

        Args:
            rate: Tokens per second.
            burst: Maximum and initial number of tokens.

        Raises:
            InvalidArgumentError: If the rate is not positive, or the burst is less than one token.
        """
        require_positive("TokenBucket", rate=rate, burst=burst)
        if burst < 1:
            raise InvalidArgumentError(f"must be >= 1, got {burst!r}.", argument="TokenBucket.burst")
        self.rate: float = rate
        self.burst: int = burst
        self._tokens = float(burst)
        self._updated_at: float | None = None
        self._row: list[float] = []  # due times on credit, in order, including gaps
        self._gaps: list[float] = []  # returned due times, in order, never the last of the row

    def reserve(self, now: float) -> Reservation:
        """Reserve one token, on credit if necessary."""
        self._advance(now)
        if self._gaps:
            return Reservation(self._gaps.pop(0))
        self._tokens -= 1.0
        if self._tokens >= 0:
            return Reservation(due_at=now)
        assert self._updated_at is not None
        due_at = max(now, self._updated_at) - self._tokens / self.rate
        self._row.append(due_at)
        return Reservation(due_at)

    def refund(self, reservation: Reservation, now: float) -> None:
        """Return an unused reservation.

        Reservations that are already due, or were returned before, are ignored.

        Args:
            reservation: Result of ``reserve``. A reservation that is due at infinity stands for the latest one, covered
                or not, for callers that do not need it immediately after the call.
            now: Time in seconds on the caller's clock.
        """
        self._advance(now)
        due_at = reservation.due_at
        if due_at == math.inf:
            self._undo_latest()
        elif _holds(self._row, due_at) and not _holds(self._gaps, due_at):
            insort(self._gaps, due_at)
        while self._gaps and self._gaps[-1] == self._row[-1]:
            self._gaps.pop()
            self._undo_latest()

    def _undo_latest(self) -> None:
        if self._row:
            self._row.pop()
        self._tokens = min(float(self.burst), self._tokens + 1.0)

    def try_take(self, now: float) -> bool:
        """Take a token if it is available."""
        self._advance(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    @property
    def tokens(self) -> float:
        """Number of tokens at the last call.

        It is negative while reservations are not covered.
        """
        return self._tokens + len(self._gaps)

    def _advance(self, now: float) -> None:
        if self._updated_at is not None and now > self._updated_at:
            self._tokens = min(float(self.burst), self._tokens + (now - self._updated_at) * self.rate)
        if self._updated_at is None or now > self._updated_at:
            self._updated_at = now
        # Past gaps are lost, because the later reservations need the tokens that were gained in the meantime.
        del self._row[: bisect_right(self._row, now)]
        del self._gaps[: bisect_right(self._gaps, now)]

    def __repr__(self) -> str:
        return f"<TokenBucket {self.tokens:.2f} of {self.burst}, {self.rate:g}/s>"


def _holds(moments: list[float], moment: float) -> bool:
    position = bisect_left(moments, moment)
    return position < len(moments) and moments[position] == moment
