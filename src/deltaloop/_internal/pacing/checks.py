"""Checks of numeric options."""

from __future__ import annotations

import math


def require_positive(owner: str, **numbers: float) -> None:
    """Check that numbers are finite and positive, or raise ValueError."""
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise ValueError(f"{owner}.{name} is {number!r}; a finite number greater than 0 is needed")


def require_not_negative(owner: str, **numbers: float) -> None:
    """Check that numbers are finite and not negative, or raise ValueError."""
    for name, number in numbers.items():
        if not (number >= 0 and math.isfinite(number)):
            raise ValueError(f"{owner}.{name} is {number!r}; a finite number, 0 or more, is needed")
