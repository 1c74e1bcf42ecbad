"""``metadata.managedFields``: who set which field, for server-side apply; often a third of an object's bytes.

Taking it off an object whose bytes are kept means to cut a slice out of them. The slice is found without decoding what
is in it, and nothing about the layout is assumed that is not checked on the object at hand:

1. The first text ``"managedFields"`` is a candidate, if ``:[`` follows. The bytes before its value, closed by ``0}}``,
   are decoded as an object whose ``metadata.managedFields`` is a number: that succeeds only if it is that very member.
2. The value ends at the first ``]`` after it, if no ``[`` lies between and that byte is not inside a text. It is not if
   the last quote before it ends a text, which what stands before that quote tells.
3. The member goes with the comma before it, else with the comma behind it, else alone.
4. The name may not occur again, plain or with letters written as escapes: a member may be there twice.

What fails a check (indented JSON, names written with escapes, nested lists, objects within the object that carry the
name themselves) is decoded into its parts and written again, which takes three times as long.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import DECODE_ERRORS, Resource

_KEY: Final = "managedFields"
_NAME: Final = b'"managedFields"'
_VALUE: Final = b":["
# Letters of the name could only be written so; a server writes such escapes for <, > and & (\u003c, \u003e, \u0026).
_ESCAPED_LETTERS: Final = (b"\\u004", b"\\u006", b"\\u007")
# What stands before a quote that begins a text, or before one that belongs to it.
_BEFORE_TEXT: Final = b"{[:, \t\r\n\\"
_COMMA, _OPEN, _CLOSE = b",{}"


class _Candidate(msgspec.Struct, gc=False, rename={"managed_fields": _KEY}):
    managed_fields: int


class _CandidateEnvelope(msgspec.Struct, gc=False):
    metadata: _Candidate


_decode_candidate: Final = msgspec.json.Decoder(_CandidateEnvelope).decode
_decode_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def strip_managed_fields(obj: Resource) -> Resource:
    """Return the object without ``metadata.managedFields``; the object itself if it has none.

    Informers do it by themselves, unless they are asked to keep the fields. An update with such an object leaves the
    server's fields as they are.

    Raises:
        MalformedObjectError: If it is not an object with metadata.

    Source: controller-runtime pkg/cache, ``TransformStripManagedFields``; client-go, KEP-5958.
    """
    raw = obj.raw
    member = raw.find(_NAME)
    if member < 0 and not _has_escaped_letters(raw, 0, len(raw)):
        return obj
    place = _place_of(raw, member) if member > 0 else None
    if place is None:
        return _strip_slowly(obj, raw)
    start, end = place
    return Resource(raw[:start] + raw[end:], obj.metadata, obj.resource_type)


def _place_of(raw: bytes, member: int) -> tuple[int, int] | None:
    """Return from where to where the member at ``member`` is to be cut, with its comma; None if a check fails."""
    value = member + len(_NAME) + 1
    if raw[value - 1 : value + 1] != _VALUE:
        return None
    end = raw.find(b"]", value, -1)
    quote = raw.rfind(b'"', value, end)
    if end < 0 or raw.find(b"[", value + 1, end) >= 0 or (quote > 0 and raw[quote - 1] in _BEFORE_TEXT):
        return None
    try:
        _decode_candidate(raw[:value] + b"0}}")
    except DECODE_ERRORS:
        return None
    end += 1
    before, behind = raw[member - 1], raw[end]
    if _has_escaped_letters(raw, 0, member):
        return None
    if behind == _CLOSE:  # nothing of the metadata follows
        return (member - 1, end) if before == _COMMA else (member, end) if before == _OPEN else None
    if behind != _COMMA or raw.find(_NAME, end) >= 0 or _has_escaped_letters(raw, end, len(raw)):
        return None
    return (member - 1, end) if before == _COMMA else (member, end + 1) if before == _OPEN else None


def _has_escaped_letters(raw: bytes, start: int, end: int) -> bool:
    return raw.find(b"\\", start, end) >= 0 and any(raw.find(each, start, end) >= 0 for each in _ESCAPED_LETTERS)


def _strip_slowly(obj: Resource, raw: bytes) -> Resource:
    try:
        parts: dict[str, Any] = _decode_parts(raw)
        metadata = _decode_parts(parts["metadata"])
    except (*DECODE_ERRORS, KeyError) as error:
        raise MalformedObjectError(f"the object has no metadata that can be read: {type(error).__name__}") from None
    if metadata.pop(_KEY, None) is None:
        return obj
    parts["metadata"] = metadata
    return Resource(msgspec.json.encode(parts), obj.metadata, obj.resource_type)
