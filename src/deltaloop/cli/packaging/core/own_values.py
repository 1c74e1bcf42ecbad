"""Keep the values that a user of a chart changed in ``values.yaml`` when the chart is written again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.cli.packaging.core.chart_values import ChartValue, values_text

VALUES: Final = "values.yaml"
SCHEMA: Final = "values.schema.json"
_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
    "null": type(None),
}


def with_own_values(there: Mapping[str, str | None], made: Mapping[str, str], values: list[ChartValue]) -> str:
    """Return the text of ``values.yaml`` with the user's own values.

    A value is the user's own if it differs from the default in the schema of the same chart. Values that the new chart
    does not have are dropped. A file that needs no change keeps its comments.

    Args:
        there: Files of the chart as they are.
        made: Files of the new chart.
        values: Values of the new chart.

    Raises:
        InvalidArgumentError: If an own value does not fit the schema.
    """
    text, schema = there.get(VALUES), there.get(SCHEMA)
    if text is None or schema is None or text == made[VALUES]:
        return made[VALUES]
    try:
        given, before = read_yaml(text), json.loads(schema)
    except ValueError:
        return made[VALUES]
    kept = [_with_own(value, given, before) for value in values]
    return text if given == read_yaml(values_text(kept)) else values_text(kept)


def _with_own(value: ChartValue, given: Any, before: Any) -> ChartValue:
    own, old = given, before
    for step in value.path.split("."):
        old = old.get("properties", {}).get(step, {})
        if not isinstance(own, dict) or step not in own:
            return value
        own = own[step]
    if own == old.get("default"):
        return value
    if not fits(value.schema, own):
        raise InvalidArgumentError(
            f"{VALUES}: {value.path} must fit {SCHEMA}, got {json.dumps(own)}. Change the value."
        )
    return ChartValue(value.path, own, value.description, value.schema)


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value fits a schema of a chart's values."""
    kinds = schema.get("type")
    if kinds is not None and not any(_is_a(kind, value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "anyOf" in schema and not any(fits(each, value) for each in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(fits(each, value) for each in schema["oneOf"]) != 1:
        return False
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        return False
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        return False
    if isinstance(value, list):
        return all(fits(schema.get("items", {}), each) for each in value)
    return not isinstance(value, dict) or _fits_object(schema, value)


def _fits_object(schema: Mapping[str, Any], value: dict[str, Any]) -> bool:
    known, other = schema.get("properties", {}), schema.get("additionalProperties", {})
    return all(name in value for name in schema.get("required", ())) and all(
        fits(known[name], each) if name in known else other is not False and fits(other, each)
        for name, each in value.items()
    )


def _is_a(kind: str, value: Any) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
