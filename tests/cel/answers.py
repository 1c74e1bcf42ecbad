"""What ours and the real language answer to an expression: a type and a JSON value, an error, or faults."""

from __future__ import annotations

import base64
import math
import re
from typing import cast

from deltaloop import cel, errors
from deltaloop.cel.libraries.instants import duration_text, timestamp_text

VARIABLES = {
    "x": cel.DYN,
    "self": cel.DYN,
    "i": cel.INT,
    "s": cel.STRING,
    "l": cel.list_of(cel.INT),
    "m": cel.map_of(cel.STRING, cel.INT),
}
BINDINGS: dict[str, object] = {"x": None, "self": None, "i": 3, "s": "abc", "l": [1, 2, 3], "m": {"a": 1, "b": 2}}
ENVIRONMENT = cel.Environment(variables=VARIABLES)


def answer(expression: str) -> dict[str, object]:
    """Return what ours answers."""
    try:
        program = ENVIRONMENT.compile(expression)
    except errors.InvalidExpressionError as error:
        return {"faults": str(error)}
    try:
        return {"type": named(program.type), "value": as_json(program.evaluate(BINDINGS))}
    except errors.EvaluationError as error:
        return {"type": named(program.type), "error": str(error)}


def named(found: cel.Type) -> str:
    """Return a type's name as cel-go prints it; in messages it has shorter ones."""
    longer = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration", "null": "null_type"}
    return re.sub(r"\b(timestamp|duration|null)\b", lambda match: longer[match[1]], str(found))


def as_json(value: object) -> object:
    """Return a value as protobuf's JSON has it."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case int() if not isinstance(value, bool) and abs(value) > 2**53 - 1:
            return str(value)
        case float() if value.is_integer():
            return int(repr(value).partition(".")[0]) if abs(value) < 1e16 else value
        case bytes():
            return base64.b64encode(value).decode()
        case cel.Timestamp():
            return timestamp_text(value)
        case cel.Duration():
            return duration_text(value)
        case cel.OptionalValue():
            return as_json(value.value)
        case cel.Type():
            return named(value)
        case list():
            return [as_json(item) for item in cast("list[object]", value)]
        case dict():
            items = cast("dict[object, object]", value).items()
            return {key if isinstance(key, str) else str(key).lower(): as_json(item) for key, item in items}
        case _:
            return value
