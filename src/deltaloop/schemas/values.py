"""Values that are more than their JSON type: bytes in base64, and times.

Each is read and written in its own form. What is refused is never repeated.

Source: Go encoding/base64, time; apimachinery pkg/apis/meta/v1/time.go, micro_time.go.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from deltaloop._internal.root_error import DeltaloopError

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})"
)
_DIGITS: Final = 7  # a point and six digits
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LAST_YEAR: Final = 9999


class MalformedValueError(DeltaloopError, ValueError):
    """What was sent is none of what its field holds; the message says why, in Go's words, without repeating it."""


def read_bytes(value: str) -> str:
    """Return bytes in base64 as Go writes them.

    Raises:
        MalformedValueError: If they are none.
    """
    sent = re.sub(r"[\r\n]", "", value).encode()
    if len(sent) % 4 or not _BASE64.fullmatch(sent):
        raise MalformedValueError("illegal base64 data")
    return base64.b64encode(base64.b64decode(sent)).decode()


def read_time(value: str) -> str:
    """Return an RFC 3339 time to the second, in UTC.

    Raises:
        MalformedValueError: If it is none.
    """
    found = _TIME.fullmatch(value)
    seconds = _in_utc(found) if found is not None else ""
    if not seconds:
        raise MalformedValueError(f'parsing time as "{_LAYOUT}": it is not of this form')
    return f"{seconds}Z"


def read_micro_time(value: str) -> str:
    """Return an RFC 3339 time with six digits below the second, in UTC.

    Raises:
        MalformedValueError: If it is none, or has other digits.
    """
    found = _TIME.fullmatch(value)
    seconds = _in_utc(found) if found is not None else ""
    if found is None or not seconds or len(found[7] or "") != _DIGITS:
        raise MalformedValueError(f'parsing time as "{_MICRO_LAYOUT}": it is not of this form')
    return f"{seconds}{found[7]}Z"


def _in_utc(found: re.Match[str]) -> str:
    """Return the date and the time of day of a time, without its fraction; "" if there is no such time."""
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    if not (year and 1 <= month <= 12 and 1 <= day <= _days_of(year, month) and hour < 24 and max(minute, second) < 60):
        return ""
    zone = found[8]
    if zone == "Z":
        return found[0][: found.end(6)]
    hours, minutes = int(zone[1:3]), int(zone[4:])
    if hours >= 24 or minutes >= 60:
        return ""
    offset = hours * 60 + minutes
    days, minute = divmod(hour * 60 + minute + (offset if zone[0] == "-" else -offset), 24 * 60)
    day += days
    if day < 1:
        month -= 1
    elif day > _days_of(year, month):
        day -= _days_of(year, month)
        month += 1
    year, month = (year - 1, 12) if month < 1 else (year + 1, 1) if month > 12 else (year, month)
    if not 1 <= year <= _LAST_YEAR:
        return ""
    day = day if day >= 1 else _days_of(year, month)
    return f"{year:04}-{month:02}-{day:02}T{minute // 60:02}:{minute % 60:02}:{second:02}"


def _days_of(year: int, month: int) -> int:
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _DAYS[month - 1] + leap
