"""Accessors for decoded JSON of unknown shape, which treat values of unexpected types as empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeGuard, TypeVar, cast

import msgspec

_JSON_TYPES: Final[dict[type, str]] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "bool",
    dict: "object",
    list: "array",
}

_VALUE_TYPES: Final[dict[type, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
}

T = TypeVar("T")


if TYPE_CHECKING:

    class _Copied(Protocol):
        def __call__(self, value: T, /) -> T: ...


_IsMapping: TypeAlias = "Callable[[object], TypeGuard[dict[str, object]]]"
_IsList: TypeAlias = "Callable[[object], TypeGuard[list[object]]]"
_TypeOf: TypeAlias = "Callable[[object], type[object]]"

# Like isinstance, but typed and without a Python frame.
is_mapping: Final = cast("_IsMapping", dict.__instancecheck__)
is_list: Final = cast("_IsList", list.__instancecheck__)
copied: Final = cast("_Copied", msgspec.to_builtins)  # a deep copy
# ``type`` itself. Pyright turns an ``Any`` into ``dict[Unknown, Unknown]`` after ``type(value) is dict``, but not here.
type_of: Final = cast("_TypeOf", type)


def value_type(value: object) -> str:
    """Return the JSON schema type of a decoded value. A float is a number even without a fraction."""
    return _VALUE_TYPES.get(type(value), "null")


_ESCAPED: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def escape_html(text: str) -> str:
    """Return JSON as Go's encoder writes it by default, with HTML characters and JavaScript line separators escaped."""
    return text.translate(_ESCAPED)


def json_type(value: object) -> str:
    """Return Go's name for the type of a decoded value."""
    return _JSON_TYPES.get(type(value), "null")


# The functions look at the exact type first, which costs no call.


def mapping(value: object) -> dict[str, object]:
    found: Any = value
    return found if type_of(found) is dict or (found is not None and is_mapping(found)) else {}


def items(value: object) -> list[object]:
    found: Any = value
    return found if type_of(found) is list or (found is not None and is_list(found)) else []


def text(value: object) -> str:
    return value if type(value) is str or isinstance(value, str) else ""


def integer(value: object) -> int:
    """Return the value as an integer if it is a number, otherwise 0. Booleans are not numbers."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def at(value: object, *fields: str) -> object:
    """Return a nested field, or None if a part of the path is missing or not an object."""
    found: Any = value
    for field in fields:
        if type_of(found) is not dict and not is_mapping(found):
            return None
        if field not in found:
            return None
        found = found[field]
    result: object = found
    return result


def string_map(value: object) -> dict[str, str]:
    """Return the entries of an object whose values are strings."""
    return {name: item for name, item in mapping(value).items() if isinstance(item, str)}


def texts(value: object) -> tuple[str, ...]:
    """Return the items of a list that are strings."""
    return tuple(item for item in items(value) if isinstance(item, str))
