"""Which versions a cache has come to."""

from __future__ import annotations

import pytest

from deltaloop.cache.core.freshness import is_reached


@pytest.mark.parametrize(
    ("wanted", "reached", "answer"),
    [("5", "5", True), ("5", "6", True), ("10", "9", False), ("x", "x", True), ("x", "y", False), ("5", "", False)],
)
def test_versions_are_compared_as_numbers_or_equal_text(wanted: str, reached: str, answer: bool) -> None:
    assert is_reached(wanted, reached=reached) is answer
