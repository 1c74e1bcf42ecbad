"""Wall-clock times as Kubernetes writes them: always UTC, always aware.

``Time`` has whole seconds (``2026-01-02T03:04:05Z``), ``MicroTime`` six digits (``2026-01-02T03:04:05.000006Z``).

Source: apimachinery pkg/apis/meta/v1 (``time.go``, ``micro_time.go``).
"""

from __future__ import annotations

from datetime import UTC, datetime

from deltaloop.api.errors import InvalidInputError


def format_time(instant: datetime) -> str:
    """Write an aware datetime as a Kubernetes ``Time``; fractions of a second are cut off."""
    return _utc(instant).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(instant: datetime) -> str:
    """Write an aware datetime as a Kubernetes ``MicroTime``."""
    return _utc(instant).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time, with or without fractions, as an aware datetime in UTC.

    Raises:
        InvalidInputError: If it is not RFC 3339 or has no zone.
    """
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(f"{text!r} is not an RFC 3339 time such as 2026-01-02T03:04:05Z") from None
    if instant.tzinfo is None:
        raise InvalidInputError(f"{text!r} has no time zone; an RFC 3339 time ends with Z or an offset")
    return instant.astimezone(UTC)


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise InvalidInputError("a naive datetime has no meaning here; pass an aware one, such as datetime.now(UTC)")
    return instant.astimezone(UTC)
