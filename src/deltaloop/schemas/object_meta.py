"""Metadata, which objects of every kind have, built in or custom: its types as the table would have them.

Source: apimachinery pkg/apis/meta/v1/types.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.schemas.type_table import TypeTable, parse_types
from deltaloop.schemas.types import FREE, Schema, TypeNode

_TEXTS: Final = {"map": "string"}
OBJECT_META_STRUCTS: Final = parse_types(
    {
        "meta.v1.ObjectMeta": {
            "fields": {
                "annotations": _TEXTS,
                "creationTimestamp": "time",
                "deletionGracePeriodSeconds": "int64",
                "deletionTimestamp": "time",
                "finalizers": {"list": "string", "set": True, "merge": ""},
                "generateName": "string",
                "generation": "int64",
                "labels": _TEXTS,
                "managedFields": {"list": "#meta.v1.ManagedFieldsEntry"},
                "name": "string",
                "namespace": "string",
                "ownerReferences": {"list": "#meta.v1.OwnerReference", "keys": ["uid"], "merge": "uid"},
                "resourceVersion": "string",
                "selfLink": "string",
                "uid": "string",
            }
        },
        "meta.v1.ManagedFieldsEntry": {
            "fields": {
                "apiVersion": "string",
                "fieldsType": "string",
                "fieldsV1": "any",
                "manager": "string",
                "operation": "string",
                "subresource": "string",
                "time": "time",
            }
        },
        "meta.v1.OwnerReference": {
            "fields": {
                "apiVersion": "string",
                "blockOwnerDeletion": "boolean",
                "controller": "boolean",
                "kind": "string",
                "name": "string",
                "uid": "string",
            },
            "atomic": True,
            "always": ["apiVersion", "kind", "name", "uid"],
        },
    }
)
"""The structs; the server writes nothing into them by default."""

_TABLE: Final = TypeTable(OBJECT_META_STRUCTS)
KNOWN_STRUCTS: Final = {name: _TABLE.struct(name) for name in OBJECT_META_STRUCTS}
METADATA: Final = KNOWN_STRUCTS["meta.v1.ObjectMeta"]

_TEXT: Final = METADATA.fields["name"]
WHOLE_OBJECT: Final = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": METADATA}


def _untyped() -> TypeNode:
    return TypeNode(
        form="object",
        fields=dict(WHOLE_OBJECT),
        open=True,
        merging="map",
        accepts="map",
        merge_fields=dict(WHOLE_OBJECT),
        element=FREE,
        zero={},
    )


UNTYPED: Final = Schema("", _untyped)
"""The schema of an object of which nothing is said but that it has metadata."""
