"""Detect an event loop that does not respond.

    idle ──interval after the last response──▶ waiting ──response──▶ idle
                                                 └──deadline──▶ silent (final)

Without this check, a thread that renews the lease for a blocked loop would keep all other candidates from leading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from deltaloop._internal.pacing import Wait


@dataclass(frozen=True, slots=True)
class Beat:
    """Send a heartbeat, and call ``answered`` when the loop responds."""


@dataclass(frozen=True, slots=True)
class Silent:
    """The loop did not respond before the deadline."""

    seconds: float


HeartbeatEffect: TypeAlias = Beat | Silent | Wait


@final
class Heartbeat:
    def __init__(self, now: float, *, interval: float, deadline: float) -> None:
        """Start the heartbeat; ``interval`` is in seconds after a response, and ``deadline`` after a heartbeat."""
        self._interval = interval
        self._deadline = deadline
        self._next_at = now
        self._asked_at: float | None = None
        self._silent: Silent | None = None

    def ask(self, now: float) -> HeartbeatEffect:
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
        """Process a response. Responses after the deadline are ignored."""
        if self._asked_at is None or now - self._asked_at >= self._deadline:
            return
        self._asked_at = None
        self._next_at = now + self._interval
