"""Does a series of samples grow? A robust slope over its second half, and a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final


@dataclass(frozen=True, slots=True)
class Bound:
    """How much a quantity may grow over the second half: the larger of a number and a share of its level."""

    number: float
    share: float = 0.0

    def at(self, level: float) -> float:
        """Return the bound for a level."""
        return max(self.number, self.share * level)


SHORT_BOUNDS: Final[Mapping[str, Bound]] = {
    "tasks": Bound(3.0),
    "timers": Bound(5.0),
    "threads": Bound(2.0),
    "watches": Bound(2.0),
    "parked": Bound(1.0),
    "files": Bound(12.0),
    "sockets": Bound(12.0),
}
"""For some seconds: what is there at once, and connections that come and go."""

BOUNDS: Final[Mapping[str, Bound]] = {
    "rss": Bound(1024.0, 0.02),  # KiB
    "blocks": Bound(500.0, 0.02),
    "objects": Bound(200.0, 0.02),
    "tasks": Bound(1.0),
    "timers": Bound(1.0),
    "threads": Bound(1.0),
    "files": Bound(1.0),
    "sockets": Bound(1.0),
    "watches": Bound(1.0),
    "delayed": Bound(5.0),
    "parked": Bound(1.0),
    "cached": Bound(1.0),
    "disk": Bound(1024.0, 0.1),  # KiB
}
"""For two hours, or a year in virtual time: what a quantity of this name may grow in the second half."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How one quantity of one process went.

    Attributes:
        process: Which process.
        quantity: Which quantity.
        level: The median of the second half.
        lowest: Its least.
        highest: Its most.
        an_hour: The slope.
        growth: The slope times the second half.
        bound: What that may be at most.
    """

    process: str
    quantity: str
    level: float
    lowest: float
    highest: float
    an_hour: float
    growth: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether it does not grow beyond the bound."""
        return self.growth <= self.bound


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median of the slopes between all pairs of points (Theil and Sen): a third may be outliers."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] > a[0]]
    return median(slopes) if slopes else 0.0


def trends(
    samples: Sequence[Mapping[str, Mapping[str, float]]], times: Sequence[float], bounds: Mapping[str, Bound] = BOUNDS
) -> list[Trend]:
    """Fit each quantity that has a bound over the second half of the time.

    Args:
        samples: Of each moment: the processes, and what each held.
        times: The moments, in seconds.
        bounds: What may grow how much.
    """
    middle = (times[0] + times[-1]) / 2
    found: list[Trend] = []
    for process in samples[-1]:
        for quantity, bound in bounds.items():
            points = [
                (at, sample[process][quantity])
                for at, sample in zip(times, samples, strict=True)
                if at >= middle and quantity in sample.get(process, {})
            ]
            if len(points) < 2:
                continue
            values = [value for _, value in points]
            level, steep = median(values), slope(points)
            found.append(
                Trend(
                    process,
                    quantity,
                    level,
                    min(values),
                    max(values),
                    steep * 3600,
                    steep * (points[-1][0] - points[0][0]),
                    bound.at(level),
                )
            )
    return found
