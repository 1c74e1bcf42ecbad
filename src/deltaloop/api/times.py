"""Wall-clock times as Kubernetes writes them: always UTC, always aware.

``Time`` has whole seconds (``2026-01-02T03:04:05Z``), ``MicroTime`` six digits (``2026-01-02T03:04:05.000006Z``).

Source: apimachinery pkg/apis/meta/v1 (``time.go``, ``micro_time.go``).
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TypeAlias

from deltaloop.api.errors import InvalidArgumentError

WallTime: TypeAlias = datetime
"""An aware datetime; the name lets cores, which know no clock, carry one from an object to an object."""


# datetime.fromisoformat reads much more: week dates, spaces, missing colons.
_RFC_3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?")


def format_time(instant: datetime) -> str:
    """Write an aware datetime as a Kubernetes ``Time``; fractions of a second are cut off."""
    return _utc(instant).isoformat(timespec="seconds") + "Z"


def format_micro_time(instant: datetime) -> str:
    """Write an aware datetime as a Kubernetes ``MicroTime``."""
    return _utc(instant).isoformat(timespec="microseconds") + "Z"


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time, with or without fractions, as an aware datetime in UTC.

    Raises:
        InvalidArgumentError: If it is not RFC 3339 or has no zone.
    """
    try:
        instant = datetime.fromisoformat(text) if _RFC_3339.fullmatch(text) else None
        if instant is not None and instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        instant = None
    if instant is None:
        raise InvalidArgumentError(f"{text!r} is not an RFC 3339 time such as 2026-01-02T03:04:05Z")
    raise InvalidArgumentError(f"{text!r} has no time zone; an RFC 3339 time ends with Z or an offset")


def utc_now() -> datetime:
    """Return the time on the wall: the one place where it is read, so that a test can set it by ``time.time``."""
    return datetime.fromtimestamp(time.time(), UTC)


def from_epoch(seconds: float) -> datetime:
    """Make an aware datetime from seconds since 1970, so that pure cores can write times without a clock at hand."""
    return datetime.fromtimestamp(seconds, UTC)


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise InvalidArgumentError("a naive datetime has no meaning here; pass an aware one, such as datetime.now(UTC)")
    return instant.astimezone(UTC).replace(tzinfo=None)
