"""Preserve a user's changes to ``values.yaml`` when the chart is written again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, is_mapping
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.cli.packaging.core.chart_values import ChartValue, values_text
from deltaloop.cli.packaging.core.value_schemas import fits

VALUES: Final = "values.yaml"
SCHEMA: Final = "values.schema.json"


def with_own_values(there: Mapping[str, str | None], made: Mapping[str, str], values: list[ChartValue]) -> str:
    """Return the text of ``values.yaml`` with the user's own values.

    A value is the user's own if it differs from the default in the schema of the same chart. Values that the new chart
    does not have are dropped. Raises InvalidArgumentError if an own value does not match the schema.
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
    own: object = given
    old: object = before
    for step in value.path.split("."):
        old = at(old, "properties", step)
        if not is_mapping(own) or step not in own:
            return value
        own = own[step]
    if own == at(old, "default"):
        return value
    if not fits(value.schema, own):
        raise InvalidArgumentError(f"{VALUES}: {value.path} must fit {SCHEMA}. Change the value.")  # can be secret
    return ChartValue(value.path, own, value.description, value.schema)
