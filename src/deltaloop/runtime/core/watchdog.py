"""When an event loop that does not answer is blocked, and how often that is said.

    idle ──a quarter of the limit after the last answer──▶ asked ──answer──▶ idle
                                                             │
                                  three quarters of the limit without an answer: blocked, said at once,
                                  and every ``AGAIN`` seconds until the answer comes: free again

So every block that is longer than the limit is found, whenever it begins, and none that is shorter than three quarters
of it. A loop also does not answer while the whole process stands still: stopped, throttled, on a machine that sleeps.
Then the watchdog itself comes too late, and the loop has used no processor time; that is no block, and asking begins
anew. A loop that holds Python's global lock delays the watchdog too, but it works meanwhile.

Source: none upstream; Go's scheduler needs no such thing.
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
    """Ask the loop for a sign of life; feed ``answered`` when it comes."""


@final
class Blocked(msgspec.Struct, frozen=True):
    """The loop is blocked.

    Attributes:
        seconds: Since it was asked.
    """

    seconds: float


WatchdogEffect: TypeAlias = Ping | Blocked | Wait


@final
class Watchdog:
    """Watches one event loop from outside; not safe for several threads."""

    def __init__(self, now: float, *, limit: float) -> None:
        """Begin to watch.

        Args:
            now: The monotonic clock, in seconds.
            limit: How long the loop may be blocked, in seconds; greater than 0.
        """
        self._interval = limit * _ASKING_PART
        self._patience = limit - self._interval
        self._due_at = now + self._interval
        self._asked_at: float | None = None
        self._used_at_question = 0.0
        self._said = False

    def ask(self, now: float, used: float) -> WatchdogEffect:
        """Return what to do now.

        Args:
            now: The monotonic clock, in seconds.
            used: Seconds of processor time that the loop's thread has used.
        """
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
        """Take the loop's answer; return for how long it was blocked, if that had been said.

        Args:
            now: When it answered, in seconds.
        """
        if self._asked_at is None:
            return None
        seconds = now - self._asked_at if self._said else None
        self._asked_at, self._said = None, False
        self._due_at = now + self._interval
        return seconds

    def _begin(self, now: float, used: float) -> None:
        self._asked_at, self._used_at_question = now, used
        self._due_at = now + self._patience
