"""CEL type declarations of Kubernetes kinds.

Fields without a type in the real server's schema are not declared, for example quantities. A field that can be a number
or a string is dynamic. A struct inside itself is an object without fields.

Source: apiserver pkg/cel/common/schemas.go, pkg/cel/openapi/resolver; apimachinery pkg/api/resource, pkg/util/intstr.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from deltaloop import cel
from deltaloop.api.json_values import mapping
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.crds.rules.declarations import (
    Declared,
    declared,
    declared_list,
    declared_map,
    declared_object,
)
from deltaloop.crds.rules.names import escaped
from deltaloop.schemas.object_meta import METADATA, UNTYPED
from deltaloop.schemas.types import TypeNode

_SCALARS: Final = {
    "string": cel.STRING,
    "boolean": cel.BOOL,
    "int32": cel.INT,
    "int64": cel.INT,
    "integer": cel.INT,
    "number": cel.DOUBLE,
    "bytes": cel.BYTES,
    "time": cel.TIMESTAMP,
    "micro_time": cel.TIMESTAMP,
    "intstr": cel.DYN,
}
_SCHEMA: Final = "JSONSchemaProps"  # untyped values are undeclared in this type, and objects elsewhere
_TEXT: Final = Declared(cel.STRING)


def declared_kind(served: ServedResource) -> Declared | None:
    """Return the declaration of a resource's objects, or None if their type is unknown."""
    source = served.schema.source
    if served.schema == UNTYPED:
        return None
    if source:
        found = declared(mapping(msgspec.json.decode(source)), is_root=True)
    else:
        found = _declared(served.schema.tree, ())
    if found is None:
        return None
    whole = {"apiVersion": _TEXT, "kind": _TEXT}
    metadata = _declared(METADATA, ())
    if metadata is not None and (source or "metadata" in found.fields):
        whole["metadata"] = metadata
    return replace(found, fields={**found.fields, **whole})


def _declared(node: TypeNode, holders: tuple[str, ...]) -> Declared | None:
    if node.form in _SCALARS:
        return Declared(_SCALARS[node.form])
    if node.form == "any":
        return None if holders and holders[-1].endswith(_SCHEMA) else declared_object({})
    if node.form == "list":
        item = None if node.items is None else _declared(node.items, holders)
        return None if item is None else declared_list(item)
    if node.form != "object":
        return None
    if node.other is not None and not node.fields:
        value = _declared(node.other, holders)
        return None if value is None else declared_map(value)
    if node.name and node.name in holders:
        return declared_object({})
    inside = (*holders, node.name)
    found = {escaped(name): _declared(part, inside) for name, part in node.fields.items()}
    return declared_object({name: part for name, part in found.items() if name is not None and part is not None})
