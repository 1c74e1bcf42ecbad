"""Decide how a program ends: drain, cancel, then abandon reconciles that do not stop.

    RUNNING ──stop──▶ DRAINING ──▶ CANCELLING ──▶ ABANDONING ──▶ ENDED
                         │              │               ▲          ▲
                         └──────────────┴── stop again ─┤          │
                         │              │               │          │
                         └─ no reconcile runs ──▶ LINGERING ───────┘

While draining, workers take no more keys, and running reconciles finish. Leadership is kept for them. They are canceled
after ``drain_timeout``, and abandoned when ``timeout`` has passed since the first stop. A second stop abandons them
immediately.

A program that serves webhooks lingers until ``grace`` seconds have passed since the first stop. It releases leadership
and serves reviews until the endpoints of its Service have changed. A second stop ends the grace period.

One request can arrive twice, for example if a terminal and a wrapper both forward Ctrl-C. Therefore a stop from the
same source within ``duplicate_signal_window`` seconds of the first one is ignored.

The lock can be released only if no reconcile runs. An abandoned reconcile can still act, so its lease must expire. The
program ends when no reconcile runs, or after ``Abandon``, which tells the holder of the lock to keep it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias, final

import msgspec

REPEAT_WINDOW: Final = 0.5
"""Time in seconds that is longer than a duplicate signal takes, and shorter than a second Ctrl-C by a person."""


class Phase(Enum):
    RUNNING = "running"
    DRAINING = "draining"
    CANCELLING = "cancelling"
    ABANDONING = "abandoning"
    LINGERING = "lingering"
    ENDED = "ended"


@final
class Continue(msgspec.Struct, frozen=True):
    """Continue to run."""


@final
class Drain(msgspec.Struct, frozen=True):
    """Take no new keys, and wait for running reconciles until ``until``."""

    until: float


@final
class Cancel(msgspec.Struct, frozen=True):
    """Cancel running reconciles, and wait for them until ``until``."""

    until: float


@final
class Abandon(msgspec.Struct, frozen=True):
    """Stop waiting for running reconciles, and do not release the lock."""


@final
class Linger(msgspec.Struct, frozen=True):
    """Release leadership, and serve the API server until ``until``."""

    until: float


@final
class End(msgspec.Struct, frozen=True):
    """End the program, because all reconciles have ended or were abandoned."""


Effect: TypeAlias = "Continue | Drain | Cancel | Abandon | Linger | End"


class Heard(Enum):
    BEGINS = "begins"
    REPEATED = "repeated"
    """A duplicate of the first stop, which changes nothing."""
    AT_ONCE = "at once"
    TOO_LATE = "too late"
    """A stop that cannot end the program any sooner."""


@final
class Shutdown:
    def __init__(
        self,
        *,
        drain_timeout: float,
        timeout: float,
        duplicate_signal_window: float = REPEAT_WINDOW,
        grace: float = 0.0,
    ) -> None:
        """Start in the running phase; times are in seconds, and ``timeout`` limits the others.

        If ``duplicate_signal_window`` is 0, each stop counts.
        """
        self._grace = min(grace, timeout)
        self._drain_timeout = min(drain_timeout, timeout)
        self._timeout = timeout
        self._repeat_window = duplicate_signal_window
        self._began_at = 0.0
        self._source = ""
        self.phase: Phase = Phase.RUNNING

    def stop(self, now: float, *, source: str = "") -> Heard:
        """Begin the shutdown; a second call ends it immediately. Stops without a source are never duplicates."""
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
        return self.phase is not Phase.RUNNING

    def ask(self, now: float, *, running: int) -> Effect:
        """Return the next effect, given the number of running reconciles, including those that were told to stop."""
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
