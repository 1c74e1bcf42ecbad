"""Values of built-in kinds that are more than their JSON type: bytes in base64, and times with microseconds.

A body that has others cannot be decoded, which is not the same as invalid: nothing else of it is looked at.

Source: Go encoding/base64; apimachinery pkg/apis/meta/v1/micro_time.go.
"""

from __future__ import annotations

import base64
import contextlib
import re
from typing import Any, Final

from deltaloop.api.errors import InvalidInputError
from deltaloop.api.times import format_micro_time, parse_time
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.json_values import at, mapping
from deltaloop.apiserver.core.served_resource import ServedResource

_BYTES: Final = {"configmaps": ("binaryData",), "secrets": ("data",)}
_MICRO_TIMES: Final = {
    "leases": (("spec", "renewTime"), ("spec", "acquireTime")),
    "events": (("eventTime",), ("series", "lastObservedTime")),
}
_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_PADDING: Final = ord("=")
_LETTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def decode_values(served: ServedResource, fields: dict[str, Any], *, applied: bool = False) -> None:
    """Check such values and write them in their own form, in place.

    Args:
        served: The resource.
        fields: The object.
        applied: Whether it comes from an apply, which has decoded it by its schema before.

    Raises:
        BadRequestError: If one cannot be read; it never repeats the value.
        ApiError: 500 for an apply, as the real server answers.
    """
    if served.custom:
        return
    plural = served.type.plural
    try:
        if served.type.group == "":
            for name in _BYTES.get(plural, ()):
                values = mapping(fields.get(name))
                values.update({key: _bytes(value) for key, value in values.items()})
        for path in _MICRO_TIMES.get(plural, ()):
            holder = mapping(at(fields, *path[:-1])) if len(path) > 1 else fields
            if isinstance(holder.get(path[-1]), str):
                holder[path[-1]] = _micro_time(holder[path[-1]])
    except ValueError as error:
        if applied:
            raise failures.not_convertible(served.type, fields, str(error)) from None
        kind = served.type.kind
        raise failures.bad_request(
            f'{kind} in version "{served.type.version}" cannot be handled as a {kind}: {error}'
        ) from None


def _bytes(value: object) -> str:
    if not isinstance(value, str):
        return ""  # null is no bytes; other types are refused before
    sent = re.sub(r"[\r\n]", "", value).encode()
    if len(sent) % 4 or not _BASE64.fullmatch(sent):
        raise ValueError(f"illegal base64 data at input byte {_corrupt_at(sent)}")
    return base64.b64encode(base64.b64decode(sent)).decode()


def _corrupt_at(sent: bytes) -> int:
    """Return where bytes cease to be base64, as Go's decoder counts it."""
    for start in range(0, len(sent), 4):
        for place in range(4):
            here = start + place
            if here == len(sent):
                return start
            if sent[here] in _LETTERS:
                continue
            if sent[here] != _PADDING or place < 2:
                return here
            end = here + (4 - place)
            if place == 2 and here + 1 < len(sent) and sent[here + 1] != _PADDING:
                return here
            return min(end, len(sent))
    return len(sent)


def _micro_time(value: str) -> str:
    if _MICRO_TIME.fullmatch(value):
        with contextlib.suppress(InvalidInputError):
            return format_micro_time(parse_time(value))
    raise ValueError(f'parsing time as "{_LAYOUT}": it is not of this form')
