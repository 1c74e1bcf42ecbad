"""Validate the paths in a CRD: printer columns, the scale subresource, and selectable fields.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deltaloop.api.json_values import mapping, text
from deltaloop.schemas.described_fields import described_field
from deltaloop.schemas.field_errors import SchemaError, duplicate, invalid_value, required, too_many

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE: Final = 8
_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")


def column_errors(field: str, column: dict[str, Any]) -> Iterator[SchemaError]:
    name, kind, form = (text(column.get(key)) for key in ("name", "type", "format"))
    if not name:
        yield required(f"{field}.name")
    if not kind:
        yield required(f"{field}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif kind not in _COLUMN_TYPES:
        yield invalid_value(f"{field}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
    if form and form not in _COLUMN_FORMATS:
        yield invalid_value(f"{field}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    path = text(column.get("jsonPath"))
    if not path:
        yield required(f"{field}.JSONPath")
    elif not path.startswith("."):
        yield _not_simple(f"{field}.JSONPath", path)


def _not_simple(field: str, path: str) -> SchemaError:
    return invalid_value(field, path, "must be a simple json path starting with .")


def scale_errors(field: str, scale: dict[str, Any]) -> Iterator[SchemaError]:
    for name, roots, words in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        path = text(scale.get(name))
        if not path:
            if len(roots) == 1:
                yield required(f"{field}.{name}")
        elif not path.startswith("."):
            yield _not_simple(f"{field}.{name}", path)
        elif not path.startswith(roots):
            yield invalid_value(f"{field}.{name}", path, words)


def selectable_errors(field: str, selectable: list[Any], schema: dict[str, Any]) -> Iterator[SchemaError]:
    seen: set[tuple[str, ...]] = set()
    for position, given in enumerate(selectable):
        path, where = text(mapping(given).get("jsonPath")), f"{field}[{position}].jsonPath"
        if not path:
            yield required(where)
            continue
        steps, found, why, _ = described_field(path, schema, brackets=False)
        if why:
            yield invalid_value(where, path, f"is an invalid path: {why}")
            continue
        if steps[:1] == ("metadata",):
            yield invalid_value(where, path, "must not point to fields in metadata")
        if found.get("type") not in _SELECTABLE_TYPES:
            words = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            yield invalid_value(where, path, words)
        if steps in seen:
            yield duplicate(where, path)
        seen.add(steps)
    if len(seen) > _MOST_SELECTABLE:
        yield too_many(field, len(seen), _MOST_SELECTABLE)
