"""Decide how a program ends: drain, cancel, then abandon reconciles that do not stop.

    RUNNING ──stop──▶ DRAINING ──▶ CANCELLING ──▶ ABANDONING ──▶ ENDED
                         │              │               ▲          ▲
                         └──────────────┴── stop again ─┤          │
                         │              │               │          │
                         └─ no reconcile runs ──▶ LINGERING ───────┘

While draining, no key is taken any more and reconciles run to their end; leadership is kept for them. When
``drain_timeout`` has passed they are cancelled. When ``timeout`` has passed since the beginning, they are left behind.
A second stop skips to that at once.

A program that serves webhooks lingers until ``grace`` seconds have passed since the beginning: it gives up leadership,
and answers reviews until the endpoints of its Service have changed. Reconciles and the grace run at the same time, and
``timeout`` bounds both. A second stop ends the grace.

One request may arrive twice: ``timeout`` signals its child and then the child's group, and a terminal and a wrapper
both pass Ctrl-C on. So a stop from the same source within ``duplicate_signal_window`` seconds of the first is the first
one again. The window does not move, so a later one counts.

The lock may be released only if no reconcile runs: one that was left behind still acts, so its lease has to expire.
So the end comes when none runs, or after ``Abandon``, which tells the holder of the lock to keep it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias, final

import msgspec

REPEAT_WINDOW: Final = 0.5
"""Seconds: longer than what sends a signal twice takes, shorter than a person who presses Ctrl-C again."""


class Phase(Enum):
    """How far the end has come."""

    RUNNING = "running"
    DRAINING = "draining"
    CANCELLING = "cancelling"
    ABANDONING = "abandoning"
    LINGERING = "lingering"
    ENDED = "ended"


@final
class Continue(msgspec.Struct, frozen=True):
    """Go on as ever."""


@final
class Drain(msgspec.Struct, frozen=True):
    """Take no new keys, and wait for what runs until ``until``."""

    until: float


@final
class Cancel(msgspec.Struct, frozen=True):
    """Cancel what runs, and wait for its end until ``until``."""

    until: float


@final
class Abandon(msgspec.Struct, frozen=True):
    """Wait for nothing any longer; what still runs is left behind, and the lock must not be given up."""


@final
class Linger(msgspec.Struct, frozen=True):
    """Give up leadership, and answer the API server until ``until``."""

    until: float


@final
class End(msgspec.Struct, frozen=True):
    """All is over: nothing runs, or what runs was abandoned."""


Effect: TypeAlias = Continue | Drain | Cancel | Abandon | Linger | End


class Heard(Enum):
    """What a stop was taken for."""

    BEGINS = "begins"
    """The first: the end begins, in good order."""
    REPEATED = "repeated"
    """The first one again: nothing changes."""
    AT_ONCE = "at once"
    """A second one: nothing is waited for any longer."""
    TOO_LATE = "too late"
    """The end cannot come any sooner."""


@final
class Shutdown:
    """The end of one program."""

    def __init__(
        self,
        *,
        drain_timeout: float,
        timeout: float,
        duplicate_signal_window: float = REPEAT_WINDOW,
        grace: float = 0.0,
    ) -> None:
        """Begin in the middle of life.

        Args:
            drain_timeout: Seconds that runs have to end by themselves; at most ``timeout`` counts.
            timeout: Seconds for all of it.
            duplicate_signal_window: Seconds in which a stop from the same source is the same one; 0 for never.
            grace: Seconds from the first stop until requests are no longer accepted; at most ``timeout`` counts.
        """
        self._grace = min(grace, timeout)
        self._drain_timeout = min(drain_timeout, timeout)
        self._timeout = timeout
        self._repeat_window = duplicate_signal_window
        self._began_at = 0.0
        self._source = ""
        self.phase: Phase = Phase.RUNNING

    def stop(self, now: float, *, source: str = "") -> Heard:
        """Begin to end; a second call ends it at once.

        Args:
            now: The monotonic clock, in seconds.
            source: Where it comes from, such as the name of a signal; without one, each call is another stop.
        """
        if self.phase is Phase.RUNNING:
            self.phase = Phase.DRAINING
            self._began_at = now
            self._source = source
            return Heard.BEGINS
        if source and source == self._source and now - self._began_at < self._repeat_window:
            return Heard.REPEATED
        if self.phase in (Phase.DRAINING, Phase.CANCELLING):
            self.phase = Phase.ABANDONING
            return Heard.AT_ONCE
        if self.phase is Phase.LINGERING:
            self.phase = Phase.ENDED
            return Heard.AT_ONCE
        return Heard.TOO_LATE

    @property
    def stopping(self) -> bool:
        """Whether the end has begun."""
        return self.phase is not Phase.RUNNING

    def ask(self, now: float, *, running: int) -> Effect:
        """Say what to do now.

        Args:
            now: The monotonic clock, in seconds.
            running: How many reconciles run, those that were told to stop included.
        """
        if self.phase is Phase.RUNNING:
            return Continue()
        if not running and self.phase is not Phase.ENDED:
            graceful = self.phase is not Phase.ABANDONING and now < self._began_at + self._grace
            self.phase = Phase.LINGERING if graceful else Phase.ENDED
        if self.phase is Phase.DRAINING and now >= self._began_at + self._drain_timeout:
            self.phase = Phase.CANCELLING
        if self.phase is Phase.CANCELLING and now >= self._began_at + self._timeout:
            self.phase = Phase.ABANDONING
        match self.phase:
            case Phase.DRAINING:
                return Drain(self._began_at + self._drain_timeout)
            case Phase.CANCELLING:
                return Cancel(self._began_at + self._timeout)
            case Phase.ABANDONING:
                self.phase = Phase.ENDED
                return Abandon()
            case Phase.LINGERING:
                return Linger(self._began_at + self._grace)
            case _:
                return End()
