from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core.kinds.cells import age, human_duration

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (-2.0, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (22.9, "22s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (3 * MINUTE + 5, "3m5s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (4 * HOUR + 10 * MINUTE, "4h10m"),
        (8 * HOUR + 10 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 5 * HOUR, "2d5h"),
        (8 * DAY + 5 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (3 * YEAR + 45 * DAY, "3y45d"),
        (9 * YEAR + 45 * DAY, "9y"),
    ],
)
def test_each_range_has_a_format(seconds: float, written: str) -> None:
    assert human_duration(seconds) == written


_UNITS = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}


def _read(written: str) -> int:
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smhdy])", written))


@given(st.integers(0, 30 * YEAR), st.integers(0, 30 * YEAR))
def test_duration_is_monotonic(one: int, other: int) -> None:
    younger, older = sorted((one, other))
    assert _read(human_duration(younger)) <= _read(human_duration(older))


@given(st.integers(0, 30 * YEAR))
def test_duration_is_rounded_down_with_small_error(seconds: int) -> None:
    shown = _read(human_duration(seconds))
    assert shown <= seconds
    assert seconds - shown <= max(0.13 * seconds, 0)


@given(st.integers(0, 2_000_000_000), st.integers(0, 1000))
def test_age_is_counted_from_the_timestamp(created: int, passed: int) -> None:
    assert age(format_time(from_epoch(created)), created + passed) == human_duration(passed)


def test_missing_and_invalid_timestamp() -> None:
    assert age(None, 0) == "<unknown>"
    assert age("", 0, missing="<none>") == "<none>"
    assert age("yesterday", 0) == "<invalid>"
