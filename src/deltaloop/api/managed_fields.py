"""``metadata.managedFields``: who set which field, for server-side apply; often a third of an object's bytes.

Taking it off an object whose bytes are kept means to cut a slice out of them. The slice is found without decoding what
is in it, and nothing about the layout is assumed that is not checked on the object at hand:

1. The first text ``"managedFields"`` is a candidate, if ``:[`` follows; the first ``]`` behind it may end its value.
2. The object is decoded with a mark in the place of that value. This is also how its metadata is read, so that no byte
   is looked at twice. It succeeds only if ``metadata.managedFields`` is the mark: then the candidate was that very
   member, and it is not there a second time, however its name is written.
3. That ``]`` was the right one, too: what follows one inside a text has an odd number of quotes, what follows one of an
   inner list has a bracket too many, and neither is JSON behind a mark.
4. The member goes with the comma before it, else with the comma behind it, else alone.

What fails a check (indented JSON, names written with escapes, nested lists, objects within the object that carry the
name before their metadata does) is decoded into its parts and written again, which takes longer.

What is cut out is thrown away unread: whether it is JSON is checked only for objects that keep it.
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
# Letters of the name could only be written so; a server writes such escapes for <, > and & (\u003c, \u003e, \u0026).
_ESCAPED_LETTERS: Final = (b"\\u004", b"\\u006", b"\\u007")
_COMMA, _OPEN, _CLOSE = b",{}"
_MARK: Final = b'"taken off: d1a0c3f7"'
_Mark = Literal["taken off: d1a0c3f7"]


class _MarkedMeta(ReceivedMetadata, frozen=True, gc=False, rename="camel"):
    # Any other value of a member of this name, also of one before or behind the mark, is an error.
    managed_fields: _Mark | msgspec.UnsetType = msgspec.UNSET


class _MarkedEnvelope(msgspec.Struct, gc=False):
    metadata: _MarkedMeta


_decode_marked: Final = msgspec.json.Decoder(_MarkedEnvelope).decode
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
    if _NAME not in raw and (b"\\" not in raw or not any(letter in raw for letter in _ESCAPED_LETTERS)):
        return obj
    stripped = decode_stripped(raw, 0, len(raw), obj.resource_type)
    return _strip_slowly(obj, raw) if stripped is None else with_stored(obj, stripped.stored)


def decode_object_stripped(resource_type: ResourceType[T], raw: bytes | bytearray | memoryview) -> T:
    """Decode an object without ``metadata.managedFields``, to the class of its resource type as ``decode_object`` does.

    Raises:
        MalformedObjectError: If the bytes are not such an object.
    """
    kept = bytes(raw)
    resource = decode_stripped(kept, 0, len(kept), resource_type)
    if resource is None:
        resource = strip_managed_fields(Resource.from_json(kept, resource_type))
    return typed(resource_type, resource)


def decode_stripped(raw: bytes, start: int, end: int, resource_type: ResourceType[Any] | None) -> Resource | None:
    """Decode the object that lies between two places of ``raw``, without ``metadata.managedFields``.

    Returns:
        The object; None if it has another layout than servers write, or is none at all: what decodes it as it is, and
        then strips it, finds out.
    """
    try:
        member = raw.find(_NAME, start, end)
        if member < 0:
            kept = raw[start:end]
            metadata = _decode_marked(kept).metadata
            if metadata.managed_fields is not msgspec.UNSET:
                return None
            return make_resource(kept, metadata, resource_type) if kept.isascii() or is_text(kept) else None
        place = _place_of(raw, member, end)
        if place is None:
            return None
        metadata = _decode_marked(_MARK.join((raw[start : member + len(_NAME) + 1], raw[place[2] : end]))).metadata
    except DECODE_ERRORS:
        return None
    if metadata.managed_fields is msgspec.UNSET:
        return None
    kept = raw[start : place[0]] + raw[place[1] : end]
    return make_resource(kept, metadata, resource_type) if kept.isascii() or is_text(kept) else None


def _place_of(raw: bytes, member: int, end: int) -> tuple[int, int, int] | None:
    """Return from where to where the member at ``member`` is to be cut, with its comma, and where its value ends.

    None if a check fails.
    """
    value = member + len(_NAME) + 1
    if raw[value - 1 : value + 1] != _VALUE:
        return None
    close = raw.find(b"]", value, end - 1) + 1
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
        raise MalformedObjectError(f"the object has no metadata that can be read: {type(error).__name__}") from None
    if metadata.pop(_KEY, None) is None:
        return obj
    parts["metadata"] = metadata
    return with_stored(obj, msgspec.json.encode(parts))
