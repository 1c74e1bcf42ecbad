"""How far a time zone is from UTC at an instant: from the system's table of zones, or as written (``+05:30``).

Reads that table and no clock.

Source: cel-spec doc/langdef.md, "Timezones"; cel-go common/types/timestamp.go.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from deltaloop.cel.faults import EvaluationError

_WRITTEN: Final = re.compile(r"([+-]?)(\d{1,2}):(\d{1,2})\Z", re.ASCII)
# Of the first and the last days that there are, the local time may be outside of Python's years.
_FIRST: Final = -62_135_596_800 + 2 * 86400
_LAST: Final = 253_402_300_799 - 2 * 86400


def offset_seconds(zone: str, seconds: int) -> int:
    """Return how many seconds a zone is ahead of UTC, at so many seconds since 1970.

    Raises:
        EvaluationError: If there is no such zone.
    """
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
