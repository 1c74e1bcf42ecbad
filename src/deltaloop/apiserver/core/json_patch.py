"""JSON Patch (RFC 6902) like the real server's library, which deviates from the RFC.

    missing member     counts as null for ``copy`` and ``test``; ``replace`` adds it; ``remove`` and ``move`` fail
    list index         can be negative, counted from the end
    path               ``""`` is valid only for ``test`` and ``replace``; text before the first slash is ignored
    missing value      counts as null
    numbers            are equal only if their text is equal: ``1`` is not ``1.0``

Source: gopkg.in/evanphx/json-patch.v4 v4.13.0, patch.go; observed on kube-apiserver.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import msgspec

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.json_values import copied, is_mapping, items

MAX_COPIED: Final = 3 * 1024 * 1024
MAX_OPERATIONS: Final = 10_000
MAX_SHIFTED: Final = 50_000_000
"""Maximum number of list items that a patch can shift, because an insertion shifts all later items."""

Container: TypeAlias = "dict[str, object] | list[object]"
_INDEX: Final = re.compile(r"[-+]?[0-9]{1,18}")
_encode: Final = msgspec.json.encode


class JsonPatchError(DeltaloopError):
    """Patch that does not apply to the object. The message does not contain data."""


class PatchTestError(JsonPatchError):
    """Failed test operation."""


def apply_operations(document: Container, operations: Sequence[object]) -> object:
    """Apply the operations to ``document`` and return the result, or raise JsonPatchError halfway."""
    copied_bytes = shifted = 0
    for operation in operations:
        if shifted > MAX_SHIFTED:
            raise JsonPatchError("the patch moves too many items of lists")
        fields: dict[str, object] = operation if is_mapping(operation) else {}
        match fields.get("op"):
            case "add":
                container, key = _found(document, fields, "path")
                shifted += _add(container, key, copied(fields.get("value")))
            case "remove":
                container, key = _found(document, fields, "path")
                shifted += _remove(container, key)
            case "replace":
                document = _replace(document, fields)
            case "move":
                container, key = _found(document, fields, "from")
                value = _get(container, key)
                shifted += _remove(container, key)
                container, key = _found(document, fields, "path")
                shifted += _add(container, key, value)
            case "copy":
                container, key = _found(document, fields, "from")
                value = copied(_get(container, key))
                container, key = _found(document, fields, "path")
                copied_bytes += len(_encode(value)) if value is not None else 0
                if copied_bytes > MAX_COPIED:
                    raise JsonPatchError("the copies of the patch are too large")
                shifted += _add(container, key, value)
            case "test":
                _test(document, fields)
            case _:
                raise JsonPatchError("the patch has an unknown operation")
    return document


def _pointer(fields: dict[str, object], name: str) -> str:
    pointer = fields.get(name)
    if not isinstance(pointer, str):
        raise JsonPatchError("an operation of the patch lacks a path")
    return pointer


def _found(document: Container, fields: dict[str, object], name: str) -> tuple[Container, str]:
    """Return the container at the end of a path, and the last step."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in _pointer(fields, name).split("/")]
    if len(steps) < 2:
        raise JsonPatchError("a path of the patch names no part of the object")
    container = document
    for step in steps[1:-1]:
        below = _get(container, step)
        if not isinstance(below, dict | list):
            raise JsonPatchError("a path of the patch leads nowhere")
        container = cast("Container", below)
    return container, steps[-1]


def _get(container: Container, key: str) -> object:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container))]


def _index(key: str, length: int) -> int:
    if not _INDEX.fullmatch(key):
        raise JsonPatchError("a path of the patch has no index where a list is")
    index = int(key)
    if not -length <= index < length:
        raise JsonPatchError("a path of the patch has an index outside of a list")
    return index % length


def _add(container: Container, key: str, value: object) -> int:
    if isinstance(container, dict):
        container[key] = value
        return 0
    index = len(container) if key == "-" else _index(key, len(container) + 1)
    container.insert(index, value)
    return len(container) - index


def _remove(container: Container, key: str) -> int:
    if isinstance(container, list):
        index = _index(key, len(container))
        del container[index]
        return len(container) - index
    if key not in container:
        raise JsonPatchError("the patch removes a missing value")
    del container[key]
    return 0


def _replace(document: Container, fields: dict[str, object]) -> Container:
    value = copied(fields.get("value"))
    if not _pointer(fields, "path"):
        if not isinstance(value, dict | list):
            raise JsonPatchError("only an object can replace an object")
        return cast("Container", value)
    container, key = _found(document, fields, "path")
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_index(key, len(container))] = value
    return document


def _test(document: Container, fields: dict[str, object]) -> None:
    if not _pointer(fields, "path"):
        present: object = document
    else:
        container, key = _found(document, fields, "path")
        present = _get(container, key)
    if not _written_alike(present, fields.get("value")):
        raise PatchTestError("a test of the patch failed")


def _written_alike(one: object, two: object) -> bool:
    if is_mapping(one) and is_mapping(two):
        return one.keys() == two.keys() and all(_written_alike(value, two[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(two, list):
        left, right = items(cast("object", one)), items(cast("object", two))
        return len(left) == len(right) and all(map(_written_alike, left, right))
    return type(one) is type(two) and one == two  # pyright: ignore[reportUnknownArgumentType] - narrowed from object
