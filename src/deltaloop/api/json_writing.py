"""Encode values as JSON, and reject values that JSON cannot represent, with their path.

Source: Go's encoding/json, "json: unsupported value: NaN".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.views import ReadOnlyList, ReadOnlyMap

_SIMPLE_KEY: Final = r"[A-Za-z_][A-Za-z0-9_-]{0,99}"
_FAILURES: Final = (msgspec.MsgspecError, TypeError, ValueError, RecursionError)


class _UnsayableError(Exception):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


def json_for_yaml(encoded: bytes) -> bytes:
    """Return JSON in which characters are escaped that a YAML reader would fold or reject in a string."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return re.sub(
        rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbf[\xbe\xbf]",
        lambda found: rf"\u{ord(found.group().decode()):04x}".encode(),
        encoded,
    )


def is_other_yaml(text: bytes) -> bool:
    """Return whether a YAML reader may read the JSON differently, or reject it."""
    halves = b"\\u" in text and re.search(rb"\\u[dD][89a-fA-F]", text) is not None
    return halves or json_for_yaml(text) != text


def _known_view(value: object) -> object:
    if isinstance(value, ReadOnlyMap):
        return value.to_dict()
    if isinstance(value, ReadOnlyList):
        return value.to_list()
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    from deltaloop.api.pydantic_models import fields_of_model, is_model_class

    if is_model_class(type(value)):
        return fields_of_model(value, with_defaults=True)
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")


_decode: Final = msgspec.json.Decoder().decode
encode_json: Final = msgspec.json.Encoder(enc_hook=_known_view).encode
"""Encoder of decoded JSON."""

_sorted: Final = msgspec.json.Encoder(order="sorted").encode


def write_json(value: object, what: str) -> bytes:
    """Encode mappings, lists and scalars, which can contain views, resources and typed objects."""
    encoded = plain_json(value)
    if encoded is not None:
        return encoded
    try:
        if isinstance(value, msgspec.Struct) and not _is_resource_class(type(value)):
            with suppress(*_FAILURES):  # _plain finds the fault and its location
                encoded = plain_json(plain_fields(value))
                if encoded is not None:
                    return encoded
        return encode_json(_plain(value, ""))
    except _UnsayableError as error:
        where = f" at {error.path}" if error.path else ""
        raise MalformedObjectError(
            f"{what} cannot be written as JSON{where}: {error.reason}", path=error.path, given=True
        ) from None
    except RecursionError:
        raise MalformedObjectError(
            f"{what} cannot be written as JSON: it is nested too deeply, or contains itself", given=True
        ) from None


def is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates, which occur in file names in other encodings."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_fields(value: object) -> Any:
    """Return a typed object as mappings, lists and scalars, including numbers that are not finite."""
    return msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=_known_view)


def plain_json(value: object, before: bytes = b"") -> bytes | None:
    """Return the JSON of a value, ``before`` if its content is the same, or None for values that JSON lacks."""
    try:
        encoded = encode_json(value)
        if encoded == before:
            return before
        after = _decode(encoded)
        if before and len(encoded) == len(before):
            from zlib import adler32  # its lower half is the sum of the bytes, which does not depend on their order

            if not (adler32(encoded) ^ adler32(before)) & 0xFFFF and _sorted(after) == _sorted(_decode(before)):
                return before  # only the order differs
        # The encoder also represents times, enums, sets and NaN, which are different values after decoding.
        is_plain = after == value
    except _FAILURES:
        return None
    return encoded if is_plain else None


def _plain(value: Any, path: str) -> Any:
    """Convert a value, and raise ``_UnsayableError`` for values that JSON cannot represent."""
    kind: type = type(cast("object", value))
    write = _WRITERS.get(kind)
    if write is None:
        write = next((write for base, write in _WRITERS.items() if isinstance(value, base)), None)
    if write is not None:
        return write(value, path)
    if _is_resource_class(kind):
        return value.to_dict()
    try:
        fields = plain_fields(value)
    except _FAILURES:
        raise _UnsayableError(path, f"a value of type {type(value).__name__} is not JSON") from None
    return _plain(fields, path)


@lru_cache(maxsize=256)
def _is_resource_class(kind: type) -> bool:
    """Return whether a class is ``Resource``, which cannot be imported here."""
    return hasattr(kind, "to_dict") and hasattr(kind, "resource_type")


def _plain_mapping(value: Mapping[Any, Any], path: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            shown = type(key).__name__
            raise _UnsayableError(path, f"a key of type {shown} is not JSON. Use a string.")
        name = _plain_text(key, path)
        fields[name] = _plain(item, _below(path, name))
    return fields


def _plain_list(value: Sequence[Any], path: str) -> list[Any]:
    return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]


def _plain_text(value: str, path: str) -> str:
    # str.__str__ returns a plain str, even for a string enum.
    text = str.__str__(value)
    if not is_unicode(text):
        raise _UnsayableError(path, "text with a lone surrogate is not Unicode. Decode it correctly.")
    return text


def _plain_float(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise _UnsayableError(path, f"a number that is not finite ({float(value)!r}) is not JSON. Omit the field.")
    return float(value)


def _refuse_set(value: object, path: str) -> Any:
    raise _UnsayableError(path, f"a {type(value).__name__} is not JSON and has no order. Use a sorted list.")


def _refuse_bytes(value: object, path: str) -> Any:
    advice = "Decode them, or use base64.b64encode(...).decode() for data of a Secret."
    raise _UnsayableError(path, f"{type(value).__name__} are not JSON. {advice}")


_WRITERS: Final[dict[type, Callable[[Any, str], Any]]] = {
    str: _plain_text,
    bool: lambda value, _: value,
    int: lambda value, _: int(value),
    float: _plain_float,
    type(None): lambda value, _: value,
    ReadOnlyMap: lambda value, _: value.to_dict(),
    ReadOnlyList: lambda value, _: value.to_list(),
    Mapping: _plain_mapping,
    list: _plain_list,
    tuple: _plain_list,
    set: _refuse_set,
    frozenset: _refuse_set,
    bytes: _refuse_bytes,
    bytearray: _refuse_bytes,
    memoryview: _refuse_bytes,
}


def _below(path: str, key: str) -> str:
    if re.fullmatch(_SIMPLE_KEY, key):
        return f"{path}.{key}" if path else key
    return f"{path}[{key[:100]!r}]"
