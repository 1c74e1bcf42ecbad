"""Values to choose from, as a schema has them: an enumeration, or what says the same where the value may be null.

Servers find null in no enumeration, whatever it lists. A pattern and bounds are not asked of null, and cost nothing,
however many values there can be: choices that may be null are a pattern, or bounds around each number.

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
    """Return a schema with an enumeration as one that may be null; any other as it is, but for that."""
    rest = {name: value for name, value in schema.items() if name != "enum"}
    values = items(schema.get("enum"))
    if values and schema.get("type") == "string":
        rest["pattern"] = f"^(?:{'|'.join(re.escape(text(each)) for each in values)})$"
    elif values:
        rest["anyOf"] = [{"minimum": each, "maximum": each} for each in values]
    return {**rest, "nullable": True}


def choices_of(schema: dict[str, Any]) -> tuple[list[Any], str]:
    """Return the values that a schema lets choose from, and the keyword that says so; none, and "", if all may be."""
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
