"""The short form of the suite, and with ``NIGHTLY=1`` the long one: all examples, marked tests."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence
from typing import Any, Final, TypeVar

import pytest

T = TypeVar("T")

NIGHTLY: Final = os.environ.get("NIGHTLY") == "1"
_FEWER: Final = 8


def examples(full: int) -> int:
    """Return the number of examples that a test draws: all of them at night, an eighth by day."""
    return full if NIGHTLY else max(5, full // _FEWER)


def share(rows: Sequence[T]) -> Sequence[T]:
    """Return the rows of a recorded table that one test goes through: all at night, every third by day."""
    return rows if NIGHTLY else rows[::3]


def is_for_the_night(item: pytest.Item) -> bool:
    """Tell whether a test is left out by day."""
    return item.get_closest_marker("nightly") is not None


def by_day(parameters: Iterable[Any], chosen: Container[Any]) -> list[Any]:
    """Mark all parameters of a test ``nightly`` but those chosen; a tuple is a row of several parameters."""
    rows: list[tuple[Any, Any]] = [(each, each if isinstance(each, tuple) else (each,)) for each in parameters]
    return [each if each in chosen else pytest.param(*row, marks=pytest.mark.nightly) for each, row in rows]
