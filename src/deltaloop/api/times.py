"""Wall-clock times in the formats of Kubernetes, always aware and in UTC.

Source: apimachinery pkg/apis/meta/v1 (``time.go``, ``micro_time.go``).
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TypeAlias

from deltaloop.api.errors import InvalidArgumentError

WallTime: TypeAlias = datetime
"""Aware datetime, for modules that must not read a clock."""


# datetime.fromisoformat also accepts week dates, spaces and missing colons.
_RFC_3339 = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?"


def format_time(instant: datetime) -> str:
    """Format an aware datetime as a Kubernetes ``Time``, without fractions of a second."""
    return _utc(instant).isoformat(timespec="seconds") + "Z"


def format_micro_time(instant: datetime) -> str:
    return _utc(instant).isoformat(timespec="microseconds") + "Z"


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time as an aware datetime in UTC, or raise InvalidArgumentError."""
    try:
        instant = datetime.fromisoformat(text) if re.fullmatch(_RFC_3339, text) else None
        if instant is not None and instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        instant = None
    if instant is None:
        raise InvalidArgumentError(f"must be like 2026-01-02T03:04:05Z (RFC 3339), got {text!r}.", argument="time")
    raise InvalidArgumentError(f"must end with Z or an offset (RFC 3339), got {text!r}.", argument="time")


def utc_now() -> datetime:
    """Return the current time. All code reads it here, so that tests can replace ``time.time``."""
    return datetime.fromtimestamp(time.time(), UTC)


def from_epoch(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise InvalidArgumentError("must have a time zone. Use for example datetime.now(UTC).", argument="datetime")
    return instant.astimezone(UTC).replace(tzinfo=None)
