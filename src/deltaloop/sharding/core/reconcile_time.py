"""Reconcile time by hash."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, final

from deltaloop.sharding.core.key_ranges import KeyRanges

HALF_LIFE: Final = 600.0
"""Time in seconds after which a reconcile has half of its weight."""
_MEAN: Final = HALF_LIFE / 0.6931471805599453  # of the ages, weighted
_MOST: Final = 65_536
_LARGEST: Final = 1e12
_LONGEST: Final = 100.0
_LEAST: Final = 1e-6


@final
class ReconcileTime:
    """Seconds of reconciles for each second that has passed. ``now`` is in seconds on one monotonic clock."""

    def __init__(self, now: float) -> None:
        # New reconciles get more weight, so that a reconcile changes one sum.
        self._sums: dict[int, float] = {}
        self._factor = 1.0
        self._at = now

    def add(self, number: int, seconds: float) -> None:
        self._sums[number] = self._sums.get(number, 0.0) + seconds * self._factor

    def expect(self, rates: Iterable[tuple[int, float]]) -> None:
        """Continue with the rates of an earlier owner."""
        for number, rate in rates:
            self.add(number, rate * _MEAN)

    def rates(self, held: KeyRanges, now: float) -> Mapping[int, float]:
        """Return the rate of each hash, and forget the hashes outside of ``held``."""
        halves = (now - self._at) / HALF_LIFE
        if halves > _LONGEST:
            self._sums.clear()
        else:
            self._factor *= 2**halves
        self._at = now
        least = _LEAST * self._factor * _MEAN
        kept = {number: each for number, each in self._sums.items() if each > least and number in held}
        if len(kept) > _MOST:
            kept = _joined(kept)
        if self._factor > _LARGEST:
            kept = {number: each / self._factor for number, each in kept.items()}
            self._factor = 1.0
        self._sums = kept
        scale = 1 / self._factor / _MEAN
        return {number: each * scale for number, each in kept.items()}


def _joined(sums: Mapping[int, float]) -> dict[int, float]:
    numbers: Collection[int] = sorted(sums)
    found: dict[int, float] = {}
    pairs = iter(numbers)
    for first in pairs:
        second = next(pairs, first)
        found[second] = sums[second] + (sums[first] if second != first else 0.0)
    return found
