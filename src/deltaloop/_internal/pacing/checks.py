"""Checks of numeric options."""

from __future__ import annotations

import math

from deltaloop._internal.root_error import InvalidArgumentError


def require_positive(owner: str, **numbers: float) -> None:
    """Check that numbers are finite and positive, or raise InvalidArgumentError."""
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise InvalidArgumentError(f"must be a finite number > 0, got {number!r}.", argument=f"{owner}.{name}")


def require_not_negative(owner: str, **numbers: float) -> None:
    """Check that numbers are finite and not negative, or raise InvalidArgumentError."""
    for name, number in numbers.items():
        if not (number >= 0 and math.isfinite(number)):
            raise InvalidArgumentError(f"must be a finite number >= 0, got {number!r}.", argument=f"{owner}.{name}")
