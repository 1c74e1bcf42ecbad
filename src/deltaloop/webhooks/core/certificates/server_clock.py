"""Estimate of the API server's clock, which verifies certificates.

A program whose clock is wrong by a year would otherwise replace all certificates as expired.
"""

from __future__ import annotations

from typing import final


@final
class ServerClock:
    """Estimate of the server's time in seconds since 1970, which starts with the program's clock. Not thread-safe."""

    def __init__(self, wall: float, monotonic: float) -> None:
        self._at = wall
        self._monotonic = monotonic
        self.is_known: bool = False
        self.offset: float = 0.0
        """Seconds between the last observed server time and the previous estimate."""

    def seen(self, server: float, monotonic: float) -> None:
        """Record the server's time in whole seconds, and the monotonic time at which the request was sent."""
        # The server truncates to whole seconds, so add half a second.
        self.offset = server + 0.5 - self.now(monotonic)
        self._at, self._monotonic, self.is_known = server + 0.5, monotonic, True

    def now(self, monotonic: float) -> float:
        return self._at + (monotonic - self._monotonic)
