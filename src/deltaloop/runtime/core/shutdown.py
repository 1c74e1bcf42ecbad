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

from typing import Final, Literal, TypeAlias, final

import msgspec

REPEAT_WINDOW: Final = 0.5
"""Time in seconds that is longer than a duplicate signal takes, and shorter than a second Ctrl-C by a person."""


Phase: TypeAlias = "Literal['running', 'draining', 'cancelling', 'abandoning', 'lingering', 'ended']"


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


Heard: TypeAlias = "Literal['begins', 'repeated', 'at once', 'too late']"


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
        self.phase: Phase = "running"

    def stop(self, now: float, *, source: str = "") -> Heard:
        """Begin the shutdown; a second call ends it immediately. Stops without a source are never duplicates."""
        if self.phase == "running":
            self.phase = "draining"
            self._began_at = now
            self._source = source
            return "begins"
        if source and source == self._source and now - self._began_at < self._repeat_window:
            return "repeated"
        if self.phase in ("draining", "cancelling"):
            self.phase = "abandoning"
            return "at once"
        if self.phase == "lingering":
            self.phase = "ended"
            return "at once"
        return "too late"

    @property
    def stopping(self) -> bool:
        return self.phase != "running"

    def ask(self, now: float, *, running: int) -> Effect:
        """Return the next effect, given the number of running reconciles, including those that were told to stop."""
        if self.phase == "running":
            return Continue()
        if not running and self.phase != "ended":
            graceful = self.phase != "abandoning" and now < self._began_at + self._grace
            self.phase = "lingering" if graceful else "ended"
        if self.phase == "draining" and now >= self._began_at + self._drain_timeout:
            self.phase = "cancelling"
        if self.phase == "cancelling" and now >= self._began_at + self._timeout:
            self.phase = "abandoning"
        match self.phase:
            case "draining":
                return Drain(self._began_at + self._drain_timeout)
            case "cancelling":
                return Cancel(self._began_at + self._timeout)
            case "abandoning":
                self.phase = "ended"
                return Abandon()
            case "lingering":
                return Linger(self._began_at + self._grace)
            case _:
                return End()
