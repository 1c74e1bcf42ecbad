"""Choices in schemas: an enumeration, or a pattern or bounds that allow null.

Source: kube-openapi pkg/validation/validate/validator.go (``basicCommonValidator``).
"""

from __future__ import annotations

import re
from typing import Any, Final

from deltaloop.api.json_values import items, mapping, text

_CHOICES: Final = re.compile(r"\^\(\?:(.*)\)\$", re.DOTALL)
_BAR: Final = re.compile(r"(?<!\\)\|")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def null_or_choice(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that allows null, with its enumeration replaced."""
    rest = {name: value for name, value in schema.items() if name != "enum"}
    values = items(schema.get("enum"))
    if values and schema.get("type") == "string":
        rest["pattern"] = f"^(?:{'|'.join(re.escape(text(each)) for each in values)})$"
    elif values:
        rest["anyOf"] = [{"minimum": each, "maximum": each} for each in values]
    return {**rest, "nullable": True}


def choices_of(schema: dict[str, Any]) -> tuple[list[Any], str]:
    """Return the choices of a schema and their keyword, or nothing and "" if all values are allowed."""
    if values := items(schema.get("enum")):
        return values, "enum"
    if found := _CHOICES.fullmatch(text(schema.get("pattern"))):
        parts = _BAR.split(found[1])
        values = [_ESCAPE.sub(r"\1", part) for part in parts]
        if [re.escape(text(each)) for each in values] == parts:
            return values, "pattern"
    bounds = [mapping(each) for each in items(schema.get("anyOf"))]
    if bounds and all(set(each) == {"minimum", "maximum"} and each["minimum"] == each["maximum"] for each in bounds):
        return [each["minimum"] for each in bounds], "anyOf"
    return [], ""
