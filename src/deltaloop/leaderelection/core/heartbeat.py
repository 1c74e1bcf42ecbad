"""When to ask the work's event loop for a sign of life, and when its silence has lasted too long.

    idle ──interval since the last answer──▶ asked ──answer──▶ idle
                                               └──silence for the deadline──▶ silent (for good)

A loop that runs answers at once, so the time from the question counts, not that from the last answer. Whoever keeps
renewing a lease for a loop that does not run keeps all other candidates from working.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from deltaloop._internal.pacing import Wait


@dataclass(frozen=True, slots=True)
class Beat:
    """Ask for a sign of life; feed ``answered`` when it comes."""


@dataclass(frozen=True, slots=True)
class Silent:
    """There was no answer for the whole deadline.

    Attributes:
        seconds: How long the silence has lasted.
    """

    seconds: float


HeartbeatEffect: TypeAlias = Beat | Silent | Wait


@final
class Heartbeat:
    """The heartbeat of one term; not safe for several threads."""

    def __init__(self, now: float, *, interval: float, deadline: float) -> None:
        """Begin now.

        Args:
            now: Seconds on the caller's clock.
            interval: Seconds from an answer to the next question.
            deadline: Seconds of silence after a question that are too long.
        """
        self._interval = interval
        self._deadline = deadline
        self._next_at = now
        self._asked_at: float | None = None
        self._silent: Silent | None = None

    def ask(self, now: float) -> HeartbeatEffect:
        """Return what to do now."""
        if self._silent is not None:
            return self._silent
        if self._asked_at is not None:
            silence = now - self._asked_at
            if silence >= self._deadline:
                self._silent = Silent(silence)
                return self._silent
            return Wait(self._asked_at + self._deadline)
        if now < self._next_at:
            return Wait(self._next_at)
        self._asked_at = now
        return Beat()

    def answered(self, now: float) -> None:
        """Take the answer; one that comes after the deadline changes nothing."""
        if self._asked_at is None or now - self._asked_at >= self._deadline:
            return
        self._asked_at = None
        self._next_at = now + self._interval
