"""Response forms: object, Table or metadata only; the first supported form of the Accept header wins.

The clause parameter ``drop`` lists fields to omit, of which only ``metadata.managedFields`` is supported.

Source: apiserver pkg/endpoints/handlers/response.go; apiextensions-apiserver
pkg/registry/customresource/tableconvertor; KEP-5958.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, mapping, text
from deltaloop.apiserver.core.kinds.cells import age
from deltaloop.apiserver.core.served_resource import ServedResource, TableColumn
from deltaloop.apiserver.core.wire.media_types import AcceptClause, parse_accept
from deltaloop.schemas.go_numbers import shown_number
from deltaloop.schemas.json_path import InvalidJsonPathError, JsonPath

_Column = tuple[TableColumn, JsonPath | None]
Form = Literal["object", "table", "partial", "partial_list"]
Shape = Literal["object", "list", "watch"]
IncludeObject = Literal["", "Metadata", "Object", "None"]

NOT_ACCEPTABLE: Final = "only the following media types are accepted: application/json"

_FORMS: Final[Mapping[str, Form]] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial_list",
}
_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_IN_JSON: Final = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


@final
@dataclass(frozen=True, slots=True)
class Output:
    """Response form that a client requests; ``drop_managed_fields`` is always False for Tables and YAML."""

    form: Form = "object"
    version: str = "v1"
    yaml: bool = False
    drop_managed_fields: bool = False

    @property
    def api_version(self) -> str:
        return f"meta.k8s.io/{self.version}"


@lru_cache(maxsize=256)
def negotiate(accept: str, *, shape: Shape = "object") -> Output | None:
    """Choose the form from the Accept header, or return None for a 406 response."""
    for clause in parse_accept(accept):
        output = _servable(clause)
        if output is not None:
            mismatch = output.form == ("partial" if shape == "list" else "partial_list")
            # YAML streams do not exist, and the server ignores the remaining clauses.
            return None if mismatch or (output.yaml and shape == "watch") else output
    return None


def _servable(clause: AcceptClause) -> Output | None:
    if not (clause.accepts_json or clause.is_yaml):
        return None
    wanted = clause.parameters.get("as")
    drops = not clause.is_yaml and "metadata.managedFields" in clause.parameters.get("drop", "").split("+")
    if wanted is None:
        return Output(yaml=clause.is_yaml, drop_managed_fields=drops)
    form, version = _FORMS.get(wanted), clause.parameters.get("v", "")
    if form is None or clause.parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    return Output(form, version, clause.is_yaml, drops and form != "table")


def parse_include_object(value: str) -> IncludeObject:
    """Parse ``includeObject``; an empty value means ``Metadata``. Raises InvalidArgumentError for other values."""
    match value:
        case "" | "Metadata" | "Object" | "None":
            return value
        case _:
            raise InvalidArgumentError(
                f"includeObject: Invalid value: {msgspec.json.encode(value).decode()}: "
                "must be 'Metadata', 'Object', 'None', or empty"
            )


def to_table(
    resource: ServedResource,
    objects: Iterable[Mapping[str, Any]],
    *,
    now: float,
    output: Output | None = None,
    metadata: Mapping[str, Any] | None = None,
    include_object: IncludeObject = "Metadata",
    with_columns: bool = True,
    default: str | None = None,
) -> dict[str, Any]:
    """Create a Table.

    ``now`` is in seconds since 1970, for ages. ``output`` determines the version. ``metadata`` is None for a single
    object, whose resource version is used. Only the first Table of a watch has column definitions. ``default`` is the
    object to mark as default, or None to find it in a list.
    """
    chosen = output or Output("table")
    listed, columns = list(objects), _readable(resource.columns)
    if default is None:
        default = resource.strategy.default_of(listed) if metadata is not None else ""
    if metadata is None:
        version = at(listed[0], "metadata", "resourceVersion") if len(listed) == 1 else None
        metadata = {"resourceVersion": version} if version else {}
    if not metadata.get("continue", True):
        # Lists of custom resources always have ``continue``, but a Table has no empty ``continue``.
        metadata = {name: value for name, value in metadata.items() if name != "continue"}
    return {
        "kind": "Table",
        "apiVersion": chosen.api_version,
        "metadata": dict(metadata),
        "columnDefinitions": [_definition(column) for column, _ in columns] if with_columns else None,
        "rows": [
            {
                "cells": _cells(resource, columns, obj, now, default=default),
                **({"conditions": conditions} if (conditions := resource.strategy.row_conditions(obj)) else {}),
                "object": _row_object(resource, obj, chosen, include_object),
            }
            for obj in listed
        ],
    }


def partial_object(obj: Mapping[str, Any], output: Output | None = None) -> dict[str, Any]:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": (output or Output("partial")).api_version,
        "metadata": dict(mapping(obj.get("metadata"))),
    }


def partial_list(
    objects: Iterable[Mapping[str, Any]], *, metadata: Mapping[str, Any], output: Output | None = None
) -> dict[str, Any]:
    chosen = output or Output("partial_list")
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": chosen.api_version,
        "metadata": dict(metadata),
        "items": [partial_object(obj, chosen) for obj in objects],
    }


def _row_object(
    resource: ServedResource, obj: Mapping[str, Any], output: Output, include_object: IncludeObject
) -> dict[str, Any] | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return {**obj, "kind": resource.type.kind, "apiVersion": resource.type.api_version}
    return partial_object(obj, output)


def _definition(column: TableColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _cells(
    resource: ServedResource, columns: Iterable[_Column], obj: Mapping[str, Any], now: float, *, default: str
) -> list[object]:
    """Return the cells of an object; the object named ``default`` is marked."""
    name = text(at(obj, "metadata", "name"))
    found: dict[str, object] = {
        "Name": f"{name} (default)" if name and name == default else name,
        "Age": age(at(obj, "metadata", "creationTimestamp"), now),
        "Created At": at(obj, "metadata", "creationTimestamp") or "<unknown>",
        **{name: cell(obj, now) for name, cell in resource.cells.items()},
        **{name: cell(obj) for name, cell in resource.strategy.cells.items()},
        **resource.strategy.timed_cells(obj, now),
    }
    return [found[column.name] if path is None else _cell(column, path, obj, now) for column, path in columns]


@lru_cache(maxsize=256)
def _readable(columns: tuple[TableColumn, ...]) -> tuple[_Column, ...]:
    """Return the columns before the first invalid path, with their parsed paths, like the real server."""
    found: list[_Column] = []
    for column in columns:
        try:
            found.append((column, JsonPath.parse(column.json_path) if column.json_path else None))
        except InvalidJsonPathError:
            break
    return tuple(found)


def _cell(column: TableColumn, path: JsonPath, obj: Mapping[str, Any], now: float) -> object:
    found = path.find(obj)
    if not found:
        return None
    value = found[0]
    match column.type:
        case "string":
            return _shown(value)
        case "date" if isinstance(value, str):
            return age(value, now)
        case "boolean" if isinstance(value, bool):
            return value
        case "integer" if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value)
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        case _:
            return None


def _shown(value: object) -> str:
    """Format a value for a string column like Go. Lists and maps are JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    return shown_number(value) if isinstance(value, float) else _encode(value).decode().translate(_IN_JSON)
