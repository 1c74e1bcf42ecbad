"""A token bucket that hands out reservations, which can be given back.

The bucket holds at most ``burst`` tokens and gains ``rate`` of them a second. A reservation takes one at once, if need
be on credit, and says how long to wait until it is covered. client-go never gives a reservation back, which is how
delays of hours pile up from adds that were de-duplicated (kubernetes#104554); here it can be done:

* on credit, reservations are moments in a row, ``1 / rate`` apart; one that is given back leaves a gap;
* the next reservation takes the first gap that is still to come: the row stays as it was, no moment is used twice;
* gaps at the end of the row are taken off it, which gives their tokens back to the bucket.

So in any stretch of ``t`` seconds, whatever is given back, at most ``burst + rate * t`` reservations are covered.
Adding a token for each reservation given back would break that: a second row would run beside what remains of the
first.

Source: golang.org/x/time/rate (``ReserveN``, ``CancelAt``), as used by client-go util/workqueue.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from typing import final

import msgspec

from deltaloop._internal.pacing.checks import require_positive


class Reservation(msgspec.Struct, frozen=True):
    """One token taken; it is covered from ``due_at`` on."""

    due_at: float

    def delay(self, now: float) -> float:
        """Seconds until the token is covered."""
        return max(0.0, self.due_at - now)


@final
class TokenBucket:
    """A bucket of tokens.

    Not safe for use from several threads; its owner has the lock.
    """

    __slots__ = ("_gaps", "_row", "_tokens", "_updated_at", "burst", "rate")

    def __init__(self, *, rate: float, burst: int) -> None:
        """Make a full bucket.

        Args:
            rate: Tokens gained a second.
            burst: Most tokens that the bucket holds, and how many it begins with.

        Raises:
            ValueError: If the rate is not greater than zero, or the burst less than one token.
        """
        require_positive("TokenBucket", rate=rate, burst=burst)
        if burst < 1:
            raise ValueError(f"TokenBucket.burst is {burst!r}; 1 or more is needed, or no token is ever whole")
        self.rate: float = rate
        self.burst: int = burst
        self._tokens = float(burst)
        self._updated_at: float | None = None
        self._row: list[float] = []  # moments promised on credit, in order, gaps included
        self._gaps: list[float] = []  # those of them that were given back, in order; never the last of the row

    def reserve(self, now: float) -> Reservation:
        """Take one token, on credit if there is none, and return when it is covered."""
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
        """Return a reservation that is not needed after all; one whose time has come was used and stays taken.

        Giving the same one back twice does nothing the second time.

        Args:
            reservation: What ``reserve`` returned. One that is due at infinity stands for the latest reservation,
                covered or not: for callers who find at once that they did not need it.
            now: Seconds on the caller's clock.
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
        """Take one token if there is one now."""
        self._advance(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    @property
    def tokens(self) -> float:
        """Tokens at the time of the last call; below zero while reservations wait to be covered."""
        return self._tokens + len(self._gaps)

    def _advance(self, now: float) -> None:
        if self._updated_at is not None and now > self._updated_at:
            self._tokens = min(float(self.burst), self._tokens + (now - self._updated_at) * self.rate)
        if self._updated_at is None or now > self._updated_at:
            self._updated_at = now
        # An unused gap is lost: what was promised after it needs the tokens that came meanwhile.
        del self._row[: bisect_right(self._row, now)]
        del self._gaps[: bisect_right(self._gaps, now)]

    def __repr__(self) -> str:
        return f"<TokenBucket {self.tokens:.2f} of {self.burst}, {self.rate:g}/s>"


def _holds(moments: list[float], moment: float) -> bool:
    position = bisect_left(moments, moment)
    return position < len(moments) and moments[position] == moment
