"""Remove ``metadata.managedFields``, which is often a third of an object's size.

The slice is found without decoding it, and every assumption about the layout is verified:

1. The first ``"managedFields"`` that is followed by ``:[`` is a candidate. The next ``]`` may end its value.
2. The object is decoded with a mark instead of this value, which also decodes its metadata, so each byte is read once.
   If ``metadata.managedFields`` is the mark, the candidate was this field, and the field is not repeated.
3. The ``]`` was also correct. After a ``]`` inside a string, the number of quotes is odd, and after a ``]`` of a nested
   list, a bracket is unbalanced. Neither is valid JSON after the mark.
4. The field is removed with the comma before it, otherwise with the comma after it, otherwise alone.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import DECODE_ERRORS, ReceivedMetadata, Resource, is_text, make_resource, typed, with_stored
from deltaloop.api.resource_type import ResourceType

T = TypeVar("T")

_KEY: Final = "managedFields"
_NAME: Final = b'"managedFields"'
_VALUE: Final = b":["
# Prefixes of escaped ASCII letters. Servers write other escapes, for <, > and & (\u003c, \u003e, \u0026).
_ESCAPED_LETTERS: Final = (b"\\u004", b"\\u006", b"\\u007")
_COMMA, _OPEN, _CLOSE, _LETTER, _BACKSLASH = b",{}F\\"  # as numbers, because a search for bytes raises an error first
_MARK: Final = b'"taken off: d1a0c3f7"'
_Mark = Literal["taken off: d1a0c3f7"]


class _MarkedMeta(ReceivedMetadata, frozen=True, gc=False, rename="camel"):
    # Any other value is an error, including duplicates of the field.
    managed_fields: _Mark | msgspec.UnsetType = msgspec.UNSET


class _MarkedEnvelope(msgspec.Struct, gc=False):
    metadata: _MarkedMeta


_decode_marked: Final = msgspec.json.Decoder(_MarkedEnvelope).decode
_decode_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def strip_managed_fields(obj: Resource) -> Resource:
    """Return the object without ``metadata.managedFields``, or the object itself if it has none.

    Informers remove the fields by default. An update with the result does not change the fields on the server.

    Raises:
        MalformedObjectError: If it is not an object with metadata.

    Source: controller-runtime pkg/cache, ``TransformStripManagedFields``; client-go, KEP-5958.
    """
    raw = obj.stored if type(obj.stored) is bytes else obj.raw
    if (_LETTER not in raw or _NAME not in raw) and (
        _BACKSLASH not in raw or not any(letter in raw for letter in _ESCAPED_LETTERS)
    ):
        return obj
    stripped = decode_stripped(raw, obj.resource_type)
    return _strip_slowly(obj, raw) if stripped is None else with_stored(obj, stripped.stored)


def decode_object_stripped(resource_type: ResourceType[T], raw: bytes | bytearray | memoryview) -> T:
    """Decode an object like ``decode_object``, without ``metadata.managedFields``; raises MalformedObjectError."""
    kept = bytes(raw)
    resource = decode_stripped(kept, resource_type)
    if resource is None:
        resource = strip_managed_fields(Resource.from_json(kept, resource_type))
    return typed(resource_type, resource)


def decode_stripped(raw: bytes, resource_type: ResourceType[Any] | None) -> Resource | None:
    """Decode an object without managed fields, or return None for an unusual layout."""
    try:
        if _LETTER not in raw or (member := raw.find(_NAME)) < 0:  # a search for one byte is faster
            metadata = _decode_marked(raw).metadata
            if metadata.managed_fields is not msgspec.UNSET:
                return None
        else:
            place = _place_of(raw, member)
            if place is None:
                return None
            metadata = _decode_marked(_MARK.join((raw[: member + len(_NAME) + 1], raw[place[2] :]))).metadata
            if metadata.managed_fields is msgspec.UNSET:
                return None
            raw = raw[: place[0]] + raw[place[1] :]
    except DECODE_ERRORS:
        return None
    return make_resource(raw, metadata, resource_type) if raw.isascii() or is_text(raw) else None


def _place_of(raw: bytes, member: int) -> tuple[int, int, int] | None:
    """Return start and end of the field with its comma, and the end of its value, or None if a check fails."""
    value = member + len(_NAME) + 1
    if raw[value - 1 : value + 1] != _VALUE:
        return None
    close = raw.find(b"]", value, -1) + 1
    if not close:
        return None
    before, behind = raw[member - 1], raw[close]
    if behind not in (_COMMA, _CLOSE):
        return None
    if before == _COMMA:
        return member - 1, close, close
    if before != _OPEN:
        return None
    return member, close + (behind == _COMMA), close


def _strip_slowly(obj: Resource, raw: bytes) -> Resource:
    try:
        parts: dict[str, Any] = _decode_parts(raw)
        metadata = _decode_parts(parts["metadata"])
    except (*DECODE_ERRORS, KeyError) as error:
        raise MalformedObjectError(f"the object must have readable metadata: {type(error).__name__}") from None
    if metadata.pop(_KEY, None) is None:
        return obj
    parts["metadata"] = metadata
    return with_stored(obj, msgspec.json.encode(parts))
