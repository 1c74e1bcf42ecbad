"""Exponential backoff with jitter.

A delay is ``d + random * jitter * d``, where ``d`` grows from ``initial`` by ``factor`` up to ``cap``. It restarts
after ``reset_after`` seconds without a call. client-go 0.36 measures this time from the last reset
(docs/reference/differences.md).

Source: apimachinery pkg/util/wait/backoff.go; client-go tools/cache/reflector.go for the numbers of reflectors.
"""

from __future__ import annotations

import math
from typing import Final, final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop._internal.root_error import InvalidArgumentError


def jitter(delay: float, factor: float, *, random: float) -> float:
    """Extend a delay in seconds randomly by up to ``factor`` times its length.

    Source: apimachinery pkg/util/wait ``Jitter``.
    """
    return delay + random * factor * delay


LONGEST_ASKED: Final = 60.0
"""Maximum delay in seconds that a server can request with ``Retry-After``.

kube-apiserver requests at most 32 s. Much longer delays come from a proxy or a mistake, and a client that obeys them
looks dead.
"""


def retry_after_delay(seconds: float | None) -> float:
    """Return the delay in seconds that a server requested, at most a minute.

    None means no delay.
    """
    return 0.0 if seconds is None else min(seconds, LONGEST_ASKED)


class Backoff(Options, frozen=True, kw_only=True):
    """Options of an exponential backoff.

    The defaults are those of client-go's reflector.

    Attributes:
        initial: First delay in seconds.
        factor: Factor between two delays.
        cap: Maximum delay in seconds, before jitter.
        jitter: Maximum random extension, relative to the delay.
        reset_after: Seconds without a call after which the delay is ``initial`` again.
    """

    initial: float = 0.8
    factor: float = 2.0
    cap: float = 30.0
    jitter: float = 1.0
    reset_after: float = 120.0

    def __post_init__(self) -> None:
        check_types(self)
        require_positive("Backoff", initial=self.initial, cap=self.cap, reset_after=self.reset_after)
        require_not_negative("Backoff", jitter=self.jitter)
        if not (self.factor >= 1 and math.isfinite(self.factor)):
            raise InvalidArgumentError(f"must be a finite number >= 1, got {self.factor!r}.", argument="Backoff.factor")


@final
class BackoffManager:
    """State of one backoff."""

    __slots__ = ("_base", "_last_call_at", "backoff")

    def __init__(self, backoff: Backoff | None = None) -> None:
        """Start with the first delay.

        Args:
            backoff: Options. None means the defaults of ``Backoff``.
        """
        self.backoff: Backoff = backoff if backoff is not None else Backoff()
        self._base = 0.0
        self._last_call_at: float | None = None

    def next_delay(self, now: float, *, random: float) -> float:
        """Return the delay in seconds before the next attempt, and increase the following delay."""
        numbers = self.backoff
        if self._last_call_at is None or now - self._last_call_at > numbers.reset_after:
            self._base = numbers.initial
        self._last_call_at = now
        delay = min(self._base, numbers.cap)
        self._base = min(self._base * numbers.factor, numbers.cap)
        return jitter(delay, numbers.jitter, random=random)

    def reset(self) -> None:
        """Restart with ``initial``, for example after a success."""
        self._last_call_at = None
