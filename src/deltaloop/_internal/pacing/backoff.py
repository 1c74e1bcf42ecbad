"""Exponential backoff with jitter, and the rule when it starts again from the beginning.

A delay is ``d + random * jitter * d`` where ``d`` grows from ``initial`` by ``factor`` up to ``cap``. It starts over
once ``reset_after`` seconds have passed without a call. client-go 0.36 measures that time from the last reset instead,
so a server that fails for longer than two minutes is asked at the quickest rate again and again; 0.26 to 0.35 measured
it from the last call, and so do we (docs/reference/differences.md).

Source: apimachinery pkg/util/wait/backoff.go; client-go tools/cache/reflector.go for the numbers of reflectors.
"""

from __future__ import annotations

import math
from typing import Final, final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive


def jitter(delay: float, factor: float, *, random: float) -> float:
    """Lengthen a delay by up to ``factor`` times itself: by 0 at ``random=0``, by nearly all of it towards 1.

    In seconds, as ``delay`` is.

    Source: apimachinery pkg/util/wait ``Jitter``.
    """
    return delay + random * factor * delay


LONGEST_ASKED: Final = 60.0
"""Seconds that a server may have us wait by its ``Retry-After``.

The flow control of kube-apiserver asks for 32 s at most (apiserver pkg/util/flowcontrol/dropped_requests_tracker.go).
What asks for a day is something in between, or a mistake, and a client that sleeps so long looks dead."""


def retry_after_delay(seconds: float | None) -> float:
    """Return how many seconds to wait at least because a server asks for it: none for None, and a minute at most."""
    return 0.0 if seconds is None else min(seconds, LONGEST_ASKED)


class Backoff(Options, frozen=True, kw_only=True):
    """The numbers of an exponential backoff, in seconds; the defaults are those of client-go's reflector.

    Attributes:
        initial: Seconds of the first delay.
        factor: By how much each delay is longer than the one before.
        cap: Most seconds of a delay, before jitter is added.
        jitter: How much may be added, as a part of the delay.
        reset_after: Seconds without a call after which the delay is ``initial`` again.
    """

    initial: float = 0.8
    factor: float = 2.0
    cap: float = 30.0
    jitter: float = 1.0
    reset_after: float = 120.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no backoff."""
        check_types(self)
        require_positive("Backoff", initial=self.initial, cap=self.cap, reset_after=self.reset_after)
        require_not_negative("Backoff", jitter=self.jitter)
        if not (self.factor >= 1 and math.isfinite(self.factor)):
            raise ValueError(f"Backoff.factor is {self.factor!r}; a finite number, 1 or more, is needed")


@final
class BackoffManager:
    """The state of one backoff: which delay is next."""

    __slots__ = ("_base", "_last_call_at", "backoff")

    def __init__(self, backoff: Backoff | None = None) -> None:
        """Begin with the first delay.

        Args:
            backoff: Its numbers; those of ``Backoff`` if there are none.
        """
        self.backoff: Backoff = backoff if backoff is not None else Backoff()
        self._base = 0.0
        self._last_call_at: float | None = None

    def next_delay(self, now: float, *, random: float) -> float:
        """Return how long to wait before the next try, and make the one after it longer."""
        numbers = self.backoff
        if self._last_call_at is None or now - self._last_call_at > numbers.reset_after:
            self._base = numbers.initial
        self._last_call_at = now
        delay = min(self._base, numbers.cap)
        self._base = min(self._base * numbers.factor, numbers.cap)
        return jitter(delay, numbers.jitter, random=random)

    def reset(self) -> None:
        """Begin again from ``initial``, as after a success."""
        self._last_call_at = None
