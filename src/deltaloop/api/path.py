"""Field paths, which decode a single field of an object."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast, final

import msgspec

from deltaloop.api.errors import InvalidPathError, MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.api.views import ReadOnlyList, ReadOnlyMap, thaw

_SEGMENT = r"""\.?([A-Za-z_$][A-Za-z0-9_$-]*)|\[(?:'([^']+)'|"([^"]+)")\]"""


@final
class Path:
    """Parsed field path.

    If you call it with an object, it returns index values: none, one, or one for each item of a list.
    """

    __slots__ = ("_decoder", "segments", "text")

    def __init__(self, text: str) -> None:
        self.text: str = text
        self.segments: tuple[str, ...] = _parse(text)
        self._decoder = _make_decoder(self.segments)

    def get(self, obj: object) -> Any:
        """Return the value of the field, or None if a part of the path is missing or null.

        Args:
            obj: ``Resource`` or mapping.

        Raises:
            MalformedObjectError: If a part of the path is not an object, or ``obj`` has a different type.
        """
        if isinstance(obj, Resource):
            return self._get_from_resource(obj)
        if isinstance(obj, Mapping):
            return self._walk(cast("Mapping[str, Any]", obj))
        raise MalformedObjectError(f"path {self.text!r} requires a Resource or a mapping, got {type(obj).__name__}")

    def _get_from_resource(self, obj: Resource) -> Any:
        if self._decoder is None or self.segments in _TYPE_FIELDS:
            return self._walk(obj.to_dict())
        try:
            value = self._decoder.decode(obj.raw)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return self._walk(obj.to_dict())  # raises a descriptive error
        for _ in self.segments:
            if value is None:
                return None
            value = value.value
        return value

    def _walk(self, value: Any) -> Any:
        for segment in self.segments:
            if value is None:
                return None
            if not isinstance(value, Mapping):
                raise MalformedObjectError(f"path {self.text!r}: the parent of {segment!r} is not an object")
            value = cast("Mapping[str, Any]", value).get(segment)
        return value

    def __call__(self, obj: object) -> list[str]:
        """Return the field as index values. Values other than strings are written as JSON, and null is omitted.

        Raises:
            MalformedObjectError: See ``get``.
        """
        value = self.get(obj)
        items = cast("Sequence[Any]", value) if isinstance(value, list | tuple | ReadOnlyList) else [value]
        return [_index_value(item) for item in items if item is not None]

    def __repr__(self) -> str:
        return f"field_path({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and other.segments == self.segments

    def __hash__(self) -> int:
        return hash(self.segments)

    def __reduce__(self) -> tuple[Any, ...]:
        return Path, (self.text,)


def field_path(text: str) -> Path:
    """Parse a path such as ``spec.nodeName`` or ``metadata.annotations['example.com/team']``.

    Raises:
        InvalidPathError: If the path is invalid. The message contains the position.
    """
    return Path(text)


# A resource provides these fields if the server omitted them.
_TYPE_FIELDS = (("apiVersion",), ("kind",))


def _make_decoder(segments: tuple[str, ...]) -> msgspec.json.Decoder[Any] | None:
    shape: Any = Any
    try:
        for segment in reversed(segments):
            shape = msgspec.defstruct("_Field", [("value", shape, None)], rename={"value": segment}, gc=False)
    except ValueError:  # msgspec rejects names with a backslash, quote or control character
        return None
    return msgspec.json.Decoder(shape)


def _index_value(item: Any) -> str:
    if isinstance(item, str):
        return item
    return msgspec.json.encode(thaw(item) if isinstance(item, ReadOnlyMap | ReadOnlyList) else item).decode()


def _parse(text: str) -> tuple[str, ...]:
    segments: list[str] = []
    position = 0
    while position < len(text):
        match = re.compile(_SEGMENT).match(text, position)
        if match is None or (position == 0 and text[0] == ".") or (position > 0 and match[1] and text[position] != "."):
            raise InvalidPathError(
                f"path must be like spec.field or metadata.labels['key'], got {text!r} (position {position})."
            )
        segments.append(match[1] or match[2] or match[3])
        position = match.end()
    if not segments:
        raise InvalidPathError("path must not be empty.")
    return tuple(segments)
