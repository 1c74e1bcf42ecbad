"""Values of built-in kinds that are more than their JSON type: bytes in base64, and times.

Each is read and written in its own form. What is refused is never repeated.

Source: Go encoding/base64, time; apimachinery pkg/apis/meta/v1/time.go, micro_time.go.
"""

from __future__ import annotations

import base64
import contextlib
import re
from typing import Final

from deltaloop.api.errors import InvalidInputError
from deltaloop.api.times import format_micro_time, format_time, parse_time

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]*={0,2}")


def read_bytes(value: str) -> str:
    """Return bytes in base64 as Go writes them.

    Raises:
        ValueError: If they are none.
    """
    sent = re.sub(r"[\r\n]", "", value).encode()
    if len(sent) % 4 or not _BASE64.fullmatch(sent):
        raise ValueError("illegal base64 data")
    return base64.b64encode(base64.b64decode(sent)).decode()


def read_time(value: str) -> str:
    """Return an RFC 3339 time to the second, in UTC.

    Raises:
        ValueError: If it is none.
    """
    with contextlib.suppress(InvalidInputError):
        return format_time(parse_time(value))
    raise ValueError(f'parsing time as "{_LAYOUT}": it is not of this form')


def read_micro_time(value: str) -> str:
    """Return an RFC 3339 time with six digits below the second, in UTC.

    Raises:
        ValueError: If it is none, or has other digits.
    """
    if _MICRO_TIME.fullmatch(value):
        with contextlib.suppress(InvalidInputError):
            return format_micro_time(parse_time(value))
    raise ValueError(f'parsing time as "{_MICRO_LAYOUT}": it is not of this form')
