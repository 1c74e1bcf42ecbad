"""Timestamps and durations with nanoseconds: parse, format, and read their parts in a time zone (UTC by default).

Source: cel-spec doc/langdef.md, "Timestamps", "Durations"; cel-go common/types/timestamp.go; Go's time.ParseDuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from deltaloop.cel.errors import EvaluationError
from deltaloop.cel.library import Library, Overload, method
from deltaloop.cel.types import DURATION, INT, STRING, TIMESTAMP
from deltaloop.cel.values import SECOND, Duration, Timestamp, as_duration, as_timestamp
from deltaloop.cel.zones import offset_seconds
from deltaloop.schemas.formats import NANOSECONDS
from deltaloop.schemas.go_numbers import days_of_month
from deltaloop.schemas.work import charge

_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))\Z", re.ASCII
)
_SPAN: Final = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_DAY: Final = 86400
_STEPS: Final = 20
_LONGEST: Final = 200  # characters of a number, where 64 bits need 19 digits


class _Calendar(msgspec.Struct, frozen=True):
    """Parts of a local time. Months and days start at 1, and Sunday is weekday 0."""

    year: int
    month: int
    day: int
    day_of_year: int
    weekday: int
    seconds: int


def _days_before(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date of the proleptic Gregorian calendar."""
    before = year - 1
    days = 365 * before + before // 4 - before // 100 + before // 400 - 719_162
    return days + sum(days_of_month(year, earlier) for earlier in range(1, month)) + day - 1


def _calendar(seconds: int) -> _Calendar:
    charge(_STEPS)
    days, rest = divmod(seconds, _DAY)
    year = 1970 + days * 400 // 146_097
    while _days_before(year, 1, 1) > days:
        year -= 1
    while _days_before(year + 1, 1, 1) <= days:
        year += 1
    of_year = day = days - _days_before(year, 1, 1)
    month = 1
    while day >= (length := days_of_month(year, month)):
        day -= length
        month += 1
    return _Calendar(year, month, day + 1, of_year, (days + 4) % 7, rest)


def parse_timestamp(text: str) -> Timestamp:
    """Parse a timestamp of the years 1 to 9999, for example ``2026-01-02T03:04:05.6Z``."""
    charge(_STEPS)
    match = _RFC3339.match(text)
    if match is None:
        raise _no_instant()
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, zone_hours, zone_minutes = match.groups()[6:]
    if not (1 <= month <= 12 and hour < 24 and minute < 60 and second < 60):
        raise _no_instant()
    if not 1 <= day <= days_of_month(year, month):
        raise _no_instant()
    ahead = int(zone_hours) * 3600 + int(zone_minutes) * 60 if sign else 0
    if sign and not (int(zone_hours) <= 24 and int(zone_minutes) < 60):
        raise _no_instant()
    seconds = _days_before(year, month, day) * _DAY + hour * 3600 + minute * 60 + second
    seconds += ahead if sign == "-" else -ahead
    nanoseconds = seconds * SECOND + int(((fraction or "") + "000000000")[:9])
    return as_timestamp(nanoseconds, -ahead if sign == "-" else ahead)


def _no_instant() -> EvaluationError:
    return EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'")


def timestamp_text(instant: Timestamp) -> str:
    seconds, nanoseconds = divmod(instant.nanoseconds, SECOND)
    parts = _calendar(seconds + instant.ahead)
    minutes, second = divmod(parts.seconds, 60)
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    zone_hours, zone_minutes = divmod(abs(instant.ahead) // 60, 60)
    zone = f"{'+' if instant.ahead > 0 else '-'}{zone_hours:02d}:{zone_minutes:02d}" if instant.ahead else "Z"
    date = f"{parts.year:04d}-{parts.month:02d}-{parts.day:02d}"
    return f"{date}T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{fraction}{zone}"


def parse_duration(text: str) -> Duration:
    """Parse a duration of at most 292 years, for example ``1h30m`` or ``-1.5s``."""
    charge(_STEPS + 15 * len(text))
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if rest == "0":
        return Duration(0)
    total = at = 0
    while at < len(rest):
        match = _SPAN.match(rest, at)
        if match is None or not (match[1] or match[2]) or match.end() - at > _LONGEST:
            raise _no_span()
        unit = NANOSECONDS[match[3]]
        fraction = match[2] or ""
        total += int(match[1] or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        at = match.end()
    if not rest:
        raise _no_span()
    try:
        return as_duration(sign * total)
    except EvaluationError:
        raise _no_span() from None


def _no_span() -> EvaluationError:
    return EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'")


def duration_text(span: Duration) -> str:
    sign = "-" if span.nanoseconds < 0 else ""
    seconds, nanoseconds = divmod(abs(span.nanoseconds), SECOND)
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return f"{sign}{seconds}{fraction}s"


def _part(name: str, read: Callable[[_Calendar], int]) -> tuple[Overload, ...]:

    def in_zone(instant: Timestamp, zone: str) -> int:
        seconds = instant.nanoseconds // SECOND
        return read(_calendar(seconds + offset_seconds(zone, seconds)))

    def in_utc(instant: Timestamp) -> int:
        return read(_calendar(instant.nanoseconds // SECOND))

    return (
        method(f"timestamp_to_{name}", (TIMESTAMP,), INT, in_utc),
        method(f"timestamp_to_{name}_with_tz", (TIMESTAMP, STRING), INT, in_zone),
    )


def _toward_zero(nanoseconds: int, unit: int) -> int:
    return nanoseconds // unit if nanoseconds >= 0 else -(-nanoseconds // unit)


def _span_in(name: str, unit: int) -> Overload:
    return method(f"duration_to_{name}", (DURATION,), INT, lambda span: _toward_zero(span.nanoseconds, unit))


def _milliseconds(instant: Timestamp, *zone: Any) -> int:
    if zone:
        offset_seconds(zone[0], 0)  # reject unknown zones
    return instant.nanoseconds % SECOND // 1_000_000


INSTANTS: Final = Library(
    "instants",
    {
        "getFullYear": _part("year", lambda at: at.year),
        "getMonth": _part("month", lambda at: at.month - 1),
        "getDayOfYear": _part("day_of_year", lambda at: at.day_of_year),
        "getDayOfMonth": _part("day_of_month", lambda at: at.day - 1),
        "getDate": _part("day_of_month_1_based", lambda at: at.day),
        "getDayOfWeek": _part("day_of_week", lambda at: at.weekday),
        "getHours": (*_part("hours", lambda at: at.seconds // 3600), _span_in("hours", 3600 * SECOND)),
        "getMinutes": (*_part("minutes", lambda at: at.seconds // 60 % 60), _span_in("minutes", 60 * SECOND)),
        "getSeconds": (*_part("seconds", lambda at: at.seconds % 60), _span_in("seconds", SECOND)),
        "getMilliseconds": (
            method("timestamp_to_milliseconds", (TIMESTAMP,), INT, _milliseconds),
            method("timestamp_to_milliseconds_with_tz", (TIMESTAMP, STRING), INT, _milliseconds),
            method(
                "duration_to_milliseconds",
                (DURATION,),
                INT,
                lambda span: _toward_zero(span.nanoseconds, 1_000_000),
            ),
        ),
    },
)
