"""A token bucket that hands out reservations, which can be given back.

The bucket holds at most ``burst`` tokens and gains ``rate`` of them a second. A reservation takes one at once,
if need be on credit, and says how long to wait until it is covered. Giving a reservation back before its time restores the token;
client-go never does, which is how delays of hours pile up from adds that were de-duplicated (kubernetes#104554).

Source: golang.org/x/time/rate (``ReserveN``, ``CancelAt``), as used by client-go util/workqueue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from deltaloop.pacing.checks import require_positive


@dataclass(frozen=True, slots=True)
class Reservation:
    """One token taken; it is covered from ``due_at`` on."""

    due_at: float

    def delay(self, now: float) -> float:
        """Seconds until the token is covered."""
        return max(0.0, self.due_at - now)


@final
class TokenBucket:
    """A bucket of tokens. Not safe for use from several threads; its owner has the lock."""

    __slots__ = ("_tokens", "_updated_at", "burst", "rate")

    def __init__(self, *, rate: float, burst: int) -> None:
        """Make a full bucket.

        Args:
            rate: Tokens gained a second.
            burst: Most tokens that the bucket holds, and how many it begins with.

        Raises:
            ValueError: If either is not greater than zero.
        """
        require_positive("TokenBucket", rate=rate, burst=burst)
        self.rate = rate
        self.burst = burst
        self._tokens = float(burst)
        self._updated_at: float | None = None

    def reserve(self, now: float) -> Reservation:
        """Take one token, on credit if there is none, and return when it is covered."""
        self._advance(now)
        self._tokens -= 1.0
        return Reservation(due_at=now if self._tokens >= 0 else now - self._tokens / self.rate)

    def give_back(self, reservation: Reservation, now: float) -> None:
        """Return a reservation that is not needed after all; one whose time has come was used and stays taken."""
        if reservation.due_at <= now:
            return
        self._advance(now)
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
        return self._tokens

    def _advance(self, now: float) -> None:
        if self._updated_at is not None and now > self._updated_at:
            self._tokens = min(float(self.burst), self._tokens + (now - self._updated_at) * self.rate)
        if self._updated_at is None or now > self._updated_at:
            self._updated_at = now

    def __repr__(self) -> str:
        return f"<TokenBucket {self._tokens:.2f} of {self.burst}, {self.rate:g}/s>"
