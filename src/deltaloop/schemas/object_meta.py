"""Types of metadata, which objects of all kinds have, in the form of the table of types.

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
                "name": "string",
                "generateName": "string",
                "namespace": "string",
                "selfLink": "string",
                "uid": "string",
                "resourceVersion": "string",
                "generation": "int64",
                "creationTimestamp": "time",
                "deletionTimestamp": "time",
                "deletionGracePeriodSeconds": "int64",
                "labels": _TEXTS,
                "annotations": _TEXTS,
                "ownerReferences": {"list": "#meta.v1.OwnerReference", "keys": ["uid"], "merge": "uid"},
                "finalizers": {"list": "string", "set": True, "merge": ""},
                "managedFields": {"list": "#meta.v1.ManagedFieldsEntry"},
            },
            "numbers": [*range(1, 15), 17],
            "omit_zero": [
                "creationTimestamp", "generateName", "generation", "name", "namespace", "resourceVersion", "selfLink",
                "uid",
            ],
        },
        "meta.v1.ManagedFieldsEntry": {
            "fields": {
                "manager": "string",
                "operation": "string",
                "apiVersion": "string",
                "time": "time",
                "fieldsType": "string",
                "fieldsV1": "any",
                "subresource": "string",
            },
            "numbers": [1, 2, 3, 4, 6, 7, 8],
            "omit_zero": ["apiVersion", "fieldsType", "manager", "operation", "subresource"],
        },
        "meta.v1.OwnerReference": {
            "fields": {
                "apiVersion": "string",
                "kind": "string",
                "name": "string",
                "uid": "string",
                "controller": "boolean",
                "blockOwnerDeletion": "boolean",
            },
            "atomic": True,
            "always": ["apiVersion", "kind", "name", "uid"],
            "numbers": [5, 1, 3, 4, 6, 7],
            "zeros": {"apiVersion": "", "kind": "", "name": "", "uid": ""},
            "defaults": {"uid": ""},
        },
    }
)  # fmt: skip
"""Structs of metadata. Their zero values are only for protobuf, because metadata gets no defaults."""

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
"""Schema of an object that only has metadata."""
