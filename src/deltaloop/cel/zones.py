"""UTC offsets of time zones, from the system's database or in the form ``+05:30``.

Source: cel-spec doc/langdef.md, "Timezones"; cel-go common/types/timestamp.go.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from deltaloop.cel.errors import EvaluationError

_WRITTEN: Final = re.compile(r"([+-]?)(\d{1,2}):(\d{1,2})\Z", re.ASCII)
# The local time of the first and last days can be outside of Python's years.
_FIRST: Final = -62_135_596_800 + 2 * 86400
_LAST: Final = 253_402_300_799 - 2 * 86400


def offset_seconds(zone: str, seconds: int) -> int:
    """Return the offset of a zone from UTC in seconds, at a time in seconds since 1970."""
    if zone in {"", "UTC"}:
        return 0
    written = _WRITTEN.match(zone)
    if written:
        sign, hours, minutes = written.groups()
        ahead = int(hours) * 3600 + int(minutes) * 60
        return -ahead if sign == "-" else ahead
    near = min(max(seconds, _FIRST), _LAST)
    found = datetime.fromtimestamp(near, UTC).astimezone(_zone(zone)).utcoffset()
    assert found is not None
    return int(found.total_seconds())


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None
