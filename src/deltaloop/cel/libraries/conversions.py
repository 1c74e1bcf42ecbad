"""Type conversions: ``int(x)``, ``string(x)``, ``duration("1h")``.

Source: cel-spec doc/langdef.md, "Type Conversions"; cel-go common/types.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from deltaloop.cel.errors import EvaluationError
from deltaloop.cel.libraries.instants import duration_text, parse_duration, parse_timestamp, timestamp_text
from deltaloop.cel.library import Library, function
from deltaloop.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    runtime_type,
    type_of,
)
from deltaloop.cel.values import INT_LEAST, INT_MOST, SECOND, UINT_MOST, Uint, as_int, as_timestamp, as_uint
from deltaloop.schemas.go_numbers import shown_number

_INTEGER: Final = re.compile(r"[+-]?[0-9]+\Z")
_NATURAL: Final = re.compile(r"[0-9]+\Z")
_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?|inf(?:inity)?)\Z|nan\Z", re.IGNORECASE
)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LONGEST_NUMBER: Final = 1000


def _failed(given: str, wanted: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{given}' to '{wanted}'")


def _itself(value: Any) -> Any:
    return value


def _double_to_int(value: float) -> int:
    if math.isfinite(value) and INT_LEAST < value < INT_MOST:
        return int(value)
    raise EvaluationError("integer overflow")


def _double_to_uint(value: float) -> Uint:
    if math.isfinite(value) and 0 <= value < UINT_MOST:
        return Uint(int(value))
    raise EvaluationError("unsigned integer overflow")


def _text_to_int(text: str) -> int:
    if len(text) <= _LONGEST_NUMBER and _INTEGER.match(text) and INT_LEAST <= int(text) <= INT_MOST:
        return int(text)
    raise _failed("string", "int")


def _text_to_uint(text: str) -> Uint:
    if len(text) <= _LONGEST_NUMBER and _NATURAL.match(text) and int(text) <= UINT_MOST:
        return Uint(int(text))
    raise _failed("string", "uint")


def _text_to_double(text: str) -> float:
    if not _FLOAT.match(text):
        raise _failed("string", "double")
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise _failed("string", "double")
    return value


def _text_to_bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _failed("string", "bool")


def _bytes_to_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _double_to_text(value: float) -> str:
    if math.isfinite(value):
        return shown_number(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


CONVERSIONS: Final = Library(
    "conversions",
    {
        "type": (function("type", (A,), type_of(A), runtime_type),),
        "dyn": (function("to_dyn", (A,), DYN, _itself),),
        "bool": (
            function("bool_to_bool", (BOOL,), BOOL, _itself),
            function("string_to_bool", (STRING,), BOOL, _text_to_bool),
        ),
        "bytes": (
            function("bytes_to_bytes", (BYTES,), BYTES, _itself),
            function("string_to_bytes", (STRING,), BYTES, lambda text: text.encode("utf-8", "surrogatepass")),
        ),
        "double": (
            function("double_to_double", (DOUBLE,), DOUBLE, _itself),
            function("int64_to_double", (INT,), DOUBLE, float),
            function("string_to_double", (STRING,), DOUBLE, _text_to_double),
            function("uint64_to_double", (UINT,), DOUBLE, float),
        ),
        "duration": (
            function("duration_to_duration", (DURATION,), DURATION, _itself),
            function("string_to_duration", (STRING,), DURATION, parse_duration),
        ),
        "int": (
            function("int64_to_int64", (INT,), INT, _itself),
            function("double_to_int64", (DOUBLE,), INT, _double_to_int),
            function("duration_to_int64", (DURATION,), INT, lambda span: span.nanoseconds),
            function("string_to_int64", (STRING,), INT, _text_to_int),
            function("timestamp_to_int64", (TIMESTAMP,), INT, lambda instant: instant.nanoseconds // SECOND),
            function("uint64_to_int64", (UINT,), INT, lambda value: as_int(int(value))),
        ),
        "string": (
            function("string_to_string", (STRING,), STRING, _itself),
            function("bool_to_string", (BOOL,), STRING, lambda value: "true" if value else "false"),
            function("bytes_to_string", (BYTES,), STRING, _bytes_to_text),
            function("double_to_string", (DOUBLE,), STRING, _double_to_text),
            function("duration_to_string", (DURATION,), STRING, duration_text),
            function("int64_to_string", (INT,), STRING, str),
            function("timestamp_to_string", (TIMESTAMP,), STRING, timestamp_text),
            function("uint64_to_string", (UINT,), STRING, str),
        ),
        "timestamp": (
            function("timestamp_to_timestamp", (TIMESTAMP,), TIMESTAMP, _itself),
            function("int64_to_timestamp", (INT,), TIMESTAMP, lambda seconds: as_timestamp(seconds * SECOND)),
            function("string_to_timestamp", (STRING,), TIMESTAMP, parse_timestamp),
        ),
        "uint": (
            function("uint64_to_uint64", (UINT,), UINT, _itself),
            function("double_to_uint64", (DOUBLE,), UINT, _double_to_uint),
            function("int64_to_uint64", (INT,), UINT, as_uint),
            function("string_to_uint64", (STRING,), UINT, _text_to_uint),
        ),
    },
)
