"""OpenAPI v2 in protobuf, the only form that client-go requests.

Source: github.com/google/gnostic-models openapiv2/OpenAPIv2.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from deltaloop.api.json_values import is_mapping, items, mapping, text

_Fields: TypeAlias = Mapping[str, tuple[int, str]]

# Field number and value form by JSON name. A form is a scalar, a message, or a special form for values that JSON
# encodes differently.
_MESSAGES: Final[Mapping[str, _Fields]] = {
    "Document": {
        "swagger": (1, "text"),
        "info": (2, "Info"),
        "paths": (8, "paths"),
        "definitions": (9, "schemas"),
    },
    "Info": {"title": (1, "text"), "version": (2, "text"), "description": (3, "text")},
    "Schema": {
        "$ref": (1, "text"),
        "format": (2, "text"),
        "title": (3, "text"),
        "description": (4, "text"),
        "default": (5, "any"),
        "multipleOf": (6, "double"),
        "maximum": (7, "double"),
        "exclusiveMaximum": (8, "integer"),
        "minimum": (9, "double"),
        "exclusiveMinimum": (10, "integer"),
        "maxLength": (11, "integer"),
        "minLength": (12, "integer"),
        "pattern": (13, "text"),
        "maxItems": (14, "integer"),
        "minItems": (15, "integer"),
        "uniqueItems": (16, "integer"),
        "maxProperties": (17, "integer"),
        "minProperties": (18, "integer"),
        "required": (19, "texts"),
        "enum": (20, "anys"),
        "additionalProperties": (21, "schema or boolean"),
        "type": (22, "type"),
        "items": (23, "items"),
        "properties": (25, "schemas"),
        "example": (30, "any"),
        "x-": (31, "extension"),
    },
    "PathItem": {
        "get": (2, "Operation"),
        "put": (3, "Operation"),
        "post": (4, "Operation"),
        "delete": (5, "Operation"),
        "patch": (8, "Operation"),
    },
    "Operation": {
        "description": (3, "text"),
        "operationId": (5, "text"),
        "produces": (6, "texts"),
        "consumes": (7, "texts"),
        "parameters": (8, "parameters"),
        "responses": (9, "responses"),
        "schemes": (10, "texts"),
        "x-": (13, "extension"),
    },
    "BodyParameter": {"name": (2, "text"), "in": (3, "text"), "required": (4, "integer"), "schema": (5, "Schema")},
    "QueryParameter": {"in": (2, "text"), "name": (4, "text"), "type": (6, "text"), "uniqueItems": (20, "integer")},
    "Response": {"description": (1, "text"), "schema": (2, "one schema")},
}
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def to_protobuf(document: Mapping[str, object]) -> bytes:
    return _message("Document", document)


def _message(name: str, value: Mapping[str, object]) -> bytes:
    fields, parts = _MESSAGES[name], list[bytes]()
    for key, below in value.items():
        number, form = fields.get("x-" if key.startswith("x-") else key, (0, ""))
        if form == "extension":
            parts.append(_named(number, key, _any(below)))
        elif form:
            parts += _field(number, form, below)
    return b"".join(parts)


def _field(number: int, form: str, value: object) -> Iterator[bytes]:
    match form:
        case "text":
            yield _span(number, text(value).encode())
        case "texts":
            yield from (_span(number, text(each).encode()) for each in items(value))
        case "integer" if isinstance(value, int):
            yield _varint(number << 3) + _varint(int(value))
        case "double" if isinstance(value, int | float):
            yield _varint(number << 3 | 1) + struct.pack("<d", value)
        case "any":
            yield _span(number, _any(value))
        case "anys":
            yield from (_span(number, _any(each)) for each in items(value))
        case "type":
            yield _span(number, b"".join(_span(1, text(each).encode()) for each in (items(value) or [value])))
        case "items" | "one schema" | "schema or boolean" if is_mapping(value):
            yield _span(number, _span(1, _message("Schema", value)))
        case "schema or boolean":
            yield _span(number, _varint(2 << 3) + _varint(value is True))
        case "schemas" | "paths":
            at, name = (1, "Schema") if form == "schemas" else (2, "PathItem")
            named = (_named(at, key, _message(name, mapping(each))) for key, each in mapping(value).items())
            yield _span(number, b"".join(named))
        case "responses":
            found = mapping(value).items()
            responses = (_named(1, key, _span(1, _message("Response", mapping(each)))) for key, each in found)
            yield _span(number, b"".join(responses))
        case "parameters":
            yield from (_span(number, _span(1, _parameter(mapping(each)))) for each in items(value))
        case _:
            if form in _MESSAGES:
                yield _span(number, _message(form, mapping(value)))


def _parameter(parameter: Mapping[str, object]) -> bytes:
    if parameter.get("in") == "body":
        return _span(1, _message("BodyParameter", parameter))
    return _span(2, _span(3, _message("QueryParameter", parameter)))


def _any(value: object) -> bytes:
    """Encode a value of any type. The message contains YAML, and JSON is valid YAML."""
    return _span(2, _encode(value) + b"\n")


def _named(number: int, name: str, value: bytes) -> bytes:
    return _span(number, _span(1, name.encode()) + _span(2, value))


def _span(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,)) if value >= 0 else _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*written, value))
