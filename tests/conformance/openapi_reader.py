"""Reads OpenAPI v2 in protobuf, by hand: the definitions of a document, and the verbs of its paths.

Source: github.com/google/gnostic-models openapiv2/OpenAPIv2.proto.
"""

from __future__ import annotations

from typing import Any

from deltaloop.apiserver.core.wire.protobuf import LENGTH, read_varint

_TEXTS = {1: "$ref", 2: "format", 4: "description", 13: "pattern"}
_NUMBERS = {11: "maxLength", 12: "minLength", 14: "maxItems", 15: "minItems"}


def fields(data: bytes) -> list[tuple[int, Any]]:
    """Return numbers and values of a message: ints, and bytes of all else."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        key, at = read_varint(data, at, len(data))
        size = {LENGTH: 0, 1: 8, 5: 4}.get(key & 7)
        if size is None:
            value, at = read_varint(data, at, len(data))
            found.append((key >> 3, value))
            continue
        if key & 7 == LENGTH:
            size, at = read_varint(data, at, len(data))
        found.append((key >> 3, data[at : at + size]))
        at += size
    return found


def _one(data: bytes, number: int) -> Any:
    return next((value for key, value in fields(data) if key == number), b"")


def _named(data: bytes, number: int) -> dict[str, bytes]:
    entries = [value for key, value in fields(data) if key == number]
    return {_one(entry, 1).decode(): _one(entry, 2) for entry in entries}


def schema(data: bytes) -> dict[str, Any]:
    """Return a schema as JSON has it, extensions as text."""
    result: dict[str, Any] = {}
    for number, value in fields(data):
        if number in _TEXTS:
            result[_TEXTS[number]] = value.decode()
        elif number in _NUMBERS:
            result[_NUMBERS[number]] = value
        elif number == 19:
            result.setdefault("required", []).append(value.decode())
        elif number == 21:
            result["additionalProperties"] = schema(_one(value, 1))
        elif number == 22:
            result["type"] = _one(value, 1).decode()
        elif number == 23:
            result["items"] = schema(_one(value, 1))
        elif number == 25:
            result["properties"] = {name: schema(each) for name, each in _named(value, 1).items()}
        elif number == 31:
            result[_one(value, 1).decode()] = _one(_one(value, 2), 2).decode()
    return result


def definitions(document: bytes) -> dict[str, dict[str, Any]]:
    """Return the definitions of a document."""
    return {name: schema(value) for name, value in _named(_one(document, 9), 1).items()}


def operations(document: bytes) -> dict[str, dict[str, tuple[str, set[str]]]]:
    """Return the operations of each path: by verb, the id and the names of the parameters."""
    verbs = {2: "get", 3: "put", 4: "post", 5: "delete", 8: "patch"}
    return {
        path: {verbs[number]: _operation(value) for number, value in fields(item) if number in verbs}
        for path, item in _named(_one(document, 8), 2).items()
    }


def _operation(data: bytes) -> tuple[str, set[str]]:
    names: set[str] = set()
    for number, value in fields(data):
        parameter = _one(value, 1) if number == 8 else b""
        body, query = _one(parameter, 1), _one(_one(parameter, 2), 3)
        names |= {each.decode() for each in (_one(body, 2), _one(query, 4)) if each}
    return _one(data, 5).decode(), names
