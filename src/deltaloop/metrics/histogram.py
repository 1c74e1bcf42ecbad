"""Prometheus histogram."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import final


@final
class Histogram:
    """Number of observations per bucket, and their sum. It is not thread-safe."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """Create an empty histogram. ``bounds`` ascend, and a bucket without an upper bound is added."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total: float = 0.0

    def observe(self, value: float) -> None:
        """Count a value in the first bucket whose bound is not less than it."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Return the bounds as texts with cumulative counts, in the format of prometheus-client."""
        bounds = [*(str(bound) for bound in self._bounds), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self._counts)), strict=True))
