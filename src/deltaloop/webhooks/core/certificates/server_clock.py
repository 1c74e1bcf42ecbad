"""Estimate of the API server's clock.

The API server verifies certificates, so its clock counts. A program whose clock is wrong by a year would otherwise
replace all certificates as expired. Between two observations, a monotonic clock measures the time.
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
        """Return the server's time for a time of the monotonic clock."""
        return self._at + (monotonic - self._monotonic)
