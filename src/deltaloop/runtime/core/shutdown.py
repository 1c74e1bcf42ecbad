"""How a program ends: first in good order, then by cancelling, then without those that do not stop.

    RUNNING ──stop──▶ DRAINING ──▶ CANCELLING ──▶ ABANDONING ──▶ ENDED
                         │              │               ▲
                         └──────────────┴── stop again ─┘
                         nothing runs any more ──▶ ENDED, from anywhere

While draining, no key is taken any more and runs go on to their end; leadership is kept up for them. When
``drain_timeout`` has passed they are cancelled; when ``timeout`` has passed since the beginning, nobody waits for them
any more. A second stop skips to that at once.

One request may arrive twice: ``timeout`` signals its child and then the child's group, and a terminal and a wrapper
both pass Ctrl-C on. So a stop from the same source within ``repeat_window`` seconds of the first is the first one
again. The window does not move: whoever goes on asking is heard when it has passed.

The lock may be given up only if nothing runs: a reconcile that was left behind still acts, so its lease has to expire
instead (others wait for that). So the end comes when nothing runs, or after ``Abandon``, which whoever holds the lock
takes for the word to keep it.
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
class End(msgspec.Struct, frozen=True):
    """All is over: nothing runs, or what runs was abandoned."""


Effect: TypeAlias = Continue | Drain | Cancel | Abandon | End


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

    def __init__(self, *, drain_timeout: float, timeout: float, repeat_window: float = REPEAT_WINDOW) -> None:
        """Begin in the middle of life.

        Args:
            drain_timeout: Seconds that runs have to end by themselves; at most ``timeout`` counts.
            timeout: Seconds for all of it.
            repeat_window: Seconds in which a stop from the same source is the same one; 0 for never.
        """
        self._drain_timeout = min(drain_timeout, timeout)
        self._timeout = timeout
        self._repeat_window = repeat_window
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
        if not running:
            self.phase = Phase.ENDED
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
            case _:
                return End()
