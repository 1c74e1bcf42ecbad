"""Metadata, and what an object says that it is, as Go reads them.

Source: apimachinery pkg/apis/meta/v1/types.go (``TypeMeta``, ``ObjectMeta``); pkg/runtime/serializer/json/meta.go.
"""

from __future__ import annotations

from typing import Any, Final

from deltaloop.api.json_values import json_type, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.metadata.go_words import json_words
from deltaloop.schemas.object_meta import METADATA
from deltaloop.schemas.reading import check_value

_SET_BY_SERVER: Final = ("creationTimestamp", "deletionTimestamp", "generation", "deletionGracePeriodSeconds")


def unreadable_type(fields: dict[str, Any]) -> str:
    """Return why an object does not say what it is: its version or kind is no text; "" if both are, or missing."""
    for name in ("apiVersion", "kind"):
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            why = f"json: cannot unmarshal {json_type(value)} into Go struct field .{name} of type string"
            return f"couldn't get version/kind; json parse error: {why}"
    return ""


def check_readable_type(fields: dict[str, Any]) -> None:
    """Refuse an object that admission has made, and that does not say what it is.

    Raises:
        ApiError: 500, as the real server answers.
    """
    if unreadable := unreadable_type(fields):
        raise failures.internal(unreadable)
    if (version := text(fields.get("apiVersion"))).count("/") > 1:
        raise failures.internal(f"unexpected GroupVersion string: {version}")


def check_metadata_types(kind: ResourceType[Resource], fields: dict[str, Any]) -> None:
    """Refuse a custom resource whose metadata cannot be read.

    Raises:
        UnreadableObjectError: Naming the field and both types; never the data.
    """
    fault = check_value(METADATA, fields.get("metadata"), whole=True)
    if fault is not None:
        # The first half is what the object says of itself.
        said, version = text(fields.get("kind")) or kind.kind, text(fields.get("apiVersion")).rpartition("/")[2]
        raise failures.unreadable(kind.kind, json_words(fault), said=said, version=version)


def drop_unreadable(metadata: dict[str, Any]) -> dict[str, str]:
    """Drop what cannot be read of the fields that the server sets, in place, and return why, by name."""
    dropped: dict[str, str] = {}
    for name in _SET_BY_SERVER:
        fault = check_value(METADATA, {name: metadata[name]}, whole=True) if name in metadata else None
        if fault is not None:
            dropped[name] = json_words(fault)
            del metadata[name]
    return dropped


def reads_as_entries(value: object) -> bool:
    """Tell whether ``managedFields`` can be read; what cannot counts as none in an object that is applied."""
    return value is not None and check_value(METADATA, {"managedFields": value}) is None
