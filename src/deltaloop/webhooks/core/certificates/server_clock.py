"""The API server's clock, as far as a program can know it: what it has shown, and what has passed since.

Certificates are checked by the API server, so its clock says whether one is valid. A program whose own clock is wrong
by a year would otherwise find everything expired, and replace it. Between two looks a clock counts that cannot be set.
"""

from __future__ import annotations

from typing import final


@final
class ServerClock:
    """Tells the server's time, in seconds since 1970. Not safe for several threads."""

    def __init__(self, wall: float, monotonic: float) -> None:
        """Begin with the program's own clock, until the server's is seen.

        Args:
            wall: Seconds since 1970 by the program's own clock.
            monotonic: Seconds by a clock that cannot be set, at the same moment.
        """
        self._at = wall
        self._monotonic = monotonic
        self.is_known: bool = False
        self.offset: float = 0.0
        """By how many seconds the server's clock was ahead of the one that was believed before."""

    def seen(self, server: float, monotonic: float) -> None:
        """Take note of a time that the server gave.

        Args:
            server: Seconds since 1970; whole ones.
            monotonic: Seconds by the clock that cannot be set, when the server was asked.
        """
        # Whole seconds, cut off: half a second is the best guess.
        self.offset = server + 0.5 - self.now(monotonic)
        self._at, self._monotonic, self.is_known = server + 0.5, monotonic, True

    def now(self, monotonic: float) -> float:
        """Return the server's time at a moment of the clock that cannot be set."""
        return self._at + (monotonic - self._monotonic)
