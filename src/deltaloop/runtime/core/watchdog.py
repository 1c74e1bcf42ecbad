"""Detection of blocked event loops.

    idle ──a quarter of the limit after the last response──▶ pinged ──response──▶ idle
                                                              │
                                  three quarters of the limit without a response: blocked, reported immediately
                                  and every ``AGAIN`` seconds until the response arrives

A loop does not respond while the whole process is stopped. In this case the watchdog itself is late, and the loop has
used no processor time, so the watchdog starts again.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

import msgspec

from deltaloop._internal.pacing import Wait

AGAIN: Final = 30.0
_ASKING_PART: Final = 0.25
_BUSY_PART: Final = 0.5


@final
class Ping(msgspec.Struct, frozen=True):
    """Ping the loop, and call ``answered`` when it responds."""


@final
class Blocked(msgspec.Struct, frozen=True):
    """The loop is blocked, for ``seconds`` since the ping."""

    seconds: float


WatchdogEffect: TypeAlias = "Ping | Blocked | Wait"


@final
class Watchdog:
    def __init__(self, now: float, *, limit: float) -> None:
        """Start to watch, with a limit in seconds for which the loop can block."""
        self._interval = limit * _ASKING_PART
        self._patience = limit - self._interval
        self._due_at = now + self._interval
        self._asked_at: float | None = None
        self._used_at_question = 0.0
        self._said = False

    def ask(self, now: float, used: float) -> WatchdogEffect:
        """Return the next effect; ``used`` is the processor time in seconds that the loop's thread has used."""
        if now < self._due_at:
            return Wait(self._due_at)
        if self._asked_at is None:
            self._begin(now, used)
            return Ping()
        late, silent = now - self._due_at, now - self._asked_at
        if late > self._patience and used - self._used_at_question < silent * _BUSY_PART:
            self._begin(now, used)
            return Wait(self._due_at)
        self._said = True
        self._due_at = now + AGAIN
        return Blocked(silent)

    def answered(self, now: float) -> float | None:
        """Record the loop's response, and return the duration of a reported block in seconds; None otherwise."""
        if self._asked_at is None:
            return None
        seconds = now - self._asked_at if self._said else None
        self._asked_at, self._said = None, False
        self._due_at = now + self._interval
        return seconds

    def _begin(self, now: float, used: float) -> None:
        self._asked_at, self._used_at_question = now, used
        self._due_at = now + self._patience
