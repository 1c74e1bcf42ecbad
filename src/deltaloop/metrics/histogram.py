"""Counts in buckets, as a Prometheus histogram has them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import final


@final
class Histogram:
    """How many observations fell up to each bound, and their sum. Not safe for threads; its owner holds a lock."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """Begin without observations; ``bounds`` ascend, and one without an upper bound follows them."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total: float = 0.0

    def observe(self, value: float) -> None:
        """Count a value into the bucket with the least bound that is not below it."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Return each bound as text with the number of values up to it, as prometheus-client takes them."""
        bounds = [*(str(bound) for bound in self._bounds), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self._counts)), strict=True))
