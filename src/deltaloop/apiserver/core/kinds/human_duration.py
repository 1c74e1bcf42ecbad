"""Ages as kubectl shows them: ``22s``, ``3m5s``, ``4h10m``, ``2d``, ``3y45d``. Coarser the older, never rounded up.

Source: apimachinery pkg/util/duration ``HumanDuration``.
"""

from __future__ import annotations

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import text
from deltaloop.api.times import parse_time

UNKNOWN = "<unknown>"
INVALID = "<invalid>"

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """Write a duration; up to two seconds of the future count as none, more of it is ``<invalid>``."""
    whole = int(seconds)
    if whole < -1:
        return INVALID
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, (_MINUTE, "m"), (1, "s"))
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, (_HOUR, "h"), (_MINUTE, "m"))
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, (_DAY, "d"), (_HOUR, "h"))
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, (_YEAR, "y"), (_DAY, "d"))
    return f"{whole // _YEAR}y"


def age(timestamp: object, now: float, *, missing: str = UNKNOWN) -> str:
    """Write the time since an RFC 3339 timestamp.

    Args:
        timestamp: The timestamp; anything else counts as missing.
        now: Seconds since 1970.
        missing: What to write where there is no timestamp.
    """
    written = text(timestamp)
    if not written:
        return missing
    try:
        return human_duration(now - parse_time(written).timestamp())
    except InvalidArgumentError:
        return INVALID


def _two(seconds: int, larger: tuple[int, str], smaller: tuple[int, str]) -> str:
    high, rest = divmod(seconds, larger[0])
    low = rest // smaller[0]
    return f"{high}{larger[1]}{low}{smaller[1]}" if low else f"{high}{larger[1]}"
