"""The short form of the suite, and the long one: ``NIGHTLY=1`` runs more examples and the tests marked ``nightly``."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import Any, Final

import pytest

NIGHTLY: Final = os.environ.get("NIGHTLY") == "1"
_FEWER: Final = 5


def examples(full: int) -> int:
    """Return the number of examples that a test draws: all of them at night, a fifth by day."""
    return full if NIGHTLY else max(5, full // _FEWER)


def by_day(parameters: Iterable[Any], chosen: Container[Any]) -> list[Any]:
    """Mark all parameters of a test ``nightly`` but those chosen."""
    return [each if each in chosen else pytest.param(each, marks=pytest.mark.nightly) for each in parameters]
