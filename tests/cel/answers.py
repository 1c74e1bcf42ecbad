"""What ours and the real language answer to an expression: a type and a JSON value, an error, or faults."""

from __future__ import annotations

import base64
import math
import re
from typing import cast

from deltaloop import cel, errors
from deltaloop.cel.kubernetes import kubernetes_environment
from deltaloop.cel.libraries.extensions import BINDINGS as BINDING_NAMES
from deltaloop.cel.libraries.instants import duration_text, timestamp_text

OBJECT = cel.object_of("Object")
PORT = cel.object_of("Object.ports.@idx")
FIELDS = {
    (OBJECT.name, "name"): cel.STRING,
    (OBJECT.name, "replicas"): cel.INT,
    (OBJECT.name, "text"): cel.STRING,
    (OBJECT.name, "labels"): cel.map_of(cel.STRING, cel.STRING),
    (OBJECT.name, "ports"): cel.list_of(PORT),
    (OBJECT.name, "ratio"): cel.DOUBLE,
    (PORT.name, "port"): cel.INT,
    (PORT.name, "name"): cel.STRING,
}
VARIABLES = {
    "x": cel.DYN,
    "self": cel.DYN,
    "d": cel.DYN,
    "i": cel.INT,
    "s": cel.STRING,
    "l": cel.list_of(cel.INT),
    "m": cel.map_of(cel.STRING, cel.INT),
    "names": cel.list_of(cel.STRING),
    "lists": cel.list_of(cel.list_of(cel.STRING)),
    "texts": cel.map_of(cel.STRING, cel.STRING),
    "o": OBJECT,
}
BINDINGS: dict[str, object] = {
    "x": None,
    "self": None,
    "d": {"a": [1, "two", {"b": "three"}], "s": "seven hundred", "n": 7, "e": ""},
    "i": 3,
    "s": "abc",
    "l": [1, 2, 3],
    "m": {"a": 1, "b": 2},
    "names": ["alpha", "a name that is longer than most", "", "é"],
    "lists": [["a", "bc"], [], ["def"]],
    "texts": {"k": "a value", "key": ""},
    "o": {
        "name": "an-object",
        "replicas": 2,
        "labels": {"app": "web", "a-long-key": "a-longer-value"},
        "ports": [{"port": 80, "name": "http"}, {"port": 443, "name": "https"}],
    },
}
# How large what is at a path may be; the same as in ``cel_go/main.go``.
SIZES = {
    "s": 20,
    "l": 10,
    "m": 5,
    "m.@keys": 7,
    "names": 8,
    "names.@items": 12,
    "lists": 3,
    "lists.@items": 4,
    "lists.@items.@items": 6,
    "texts": 6,
    "texts.@keys": 7,
    "texts.@values": 9,
    "o.name": 30,
    "o.labels": 5,
    "o.labels.@keys": 11,
    "o.labels.@values": 13,
    "o.ports": 16,
    "o.ports.@items.name": 15,
    "o.text": 1000,
}


class Fields:
    """The types of the object's fields."""

    def field_type(self, type_name: str, field: str) -> cel.Type | None:
        return FIELDS.get((type_name, field))

    def named_type(self, name: str) -> cel.Type | None:
        return OBJECT if name == OBJECT.name else None


ENVIRONMENT = kubernetes_environment().with_variables(VARIABLES, Fields(), libraries=[BINDING_NAMES])


def size(path: tuple[str, ...]) -> cel.Estimate | None:
    """Return how large what is at a path may be."""
    most = SIZES.get(".".join(path))
    return None if most is None else cel.Estimate(0, most)


def answer(expression: str) -> dict[str, object]:
    """Return what ours answers."""
    try:
        program = ENVIRONMENT.compile(expression)
    except errors.InvalidExpressionError as error:
        return {"program": error.faults[0].message} if error.checked else {"faults": str(error)}
    found = program.evaluate_with_cost(BINDINGS, limit=1_000_000)
    told: dict[str, object] = {"type": named(program.type), "estimate": list(program.estimate_cost(size))}
    told |= {"value": as_json(found.value)} if found.error is None else {"error": str(found.error)}
    return told | {"cost": found.cost}


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
