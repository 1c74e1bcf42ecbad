"""Times and bytes against Python's own reading of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.schemas.reading import MalformedValueError, read_bytes, read_micro_time, read_time

ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=ZONES).filter(lambda instant: 1 < instant.year < 9999))
def test_times_are_formatted_in_utc(instant: datetime) -> None:
    wanted = instant.astimezone(UTC).replace(tzinfo=None)
    micro = instant.isoformat(timespec="microseconds")
    assert read_time(micro) == f"{wanted.isoformat(timespec='seconds')}Z"
    assert read_micro_time(micro) == f"{wanted.isoformat(timespec='microseconds')}Z"


@given(st.tuples(*(st.integers(0, most) for most in (9999, 13, 32, 25, 61, 61, 25, 61))), st.sampled_from("+-"))
def test_times_outside_calendar_are_rejected(parts: tuple[int, ...], sign: str) -> None:
    year, month, day, hour, minute, second, hours, minutes = parts
    value = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{hours:02}:{minutes:02}"
    try:
        wanted = datetime.fromisoformat(value).astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        wanted = ""
    if wanted and minutes < 60:
        assert read_time(value) == wanted
    else:
        with pytest.raises(MalformedValueError):
            read_time(value)


@pytest.mark.parametrize("value", ["?", "YQ", "YQ=", "YWJj!", "=", "====", "YQ==YQ=="])
def test_error_does_not_contain_rejected_value(value: str) -> None:
    with pytest.raises(MalformedValueError) as caught:
        read_bytes(value)
    assert value not in str(caught.value)
