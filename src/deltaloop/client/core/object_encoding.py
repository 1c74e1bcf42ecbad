"""Writes an object for the server, whichever of the three forms it comes in: ``Resource``, mapping, or typed object.

``apiVersion`` and ``kind`` are filled in from the resource type where they are missing, as items of lists do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.views import ReadOnlyList, ReadOnlyMap, thaw


class OutgoingObject(NamedTuple):
    """An object as JSON, and the parts of its name that make the URL."""

    body: bytes
    name: str
    namespace: str


def encode_object(resource_type: ResourceType[Any], obj: object) -> OutgoingObject:
    """Encode an object.

    Raises:
        MalformedObjectError: If it has no metadata, or holds what JSON cannot express.
    """
    fields = _fields(resource_type, obj)
    metadata = fields.get("metadata")
    if not isinstance(metadata, Mapping):
        raise MalformedObjectError(f"the {resource_type} object has no metadata: give it a name there")
    named = cast("Mapping[str, Any]", metadata)
    name, namespace = named.get("name") or "", named.get("namespace") or ""
    if not isinstance(name, str) or not isinstance(namespace, str):
        raise MalformedObjectError(f"{resource_type}: metadata.name and metadata.namespace must be text")
    if not fields.get("apiVersion"):
        fields["apiVersion"] = resource_type.api_version
    if not fields.get("kind"):
        fields["kind"] = resource_type.kind
    return OutgoingObject(encode_json(fields, f"the {resource_type} object"), name, namespace)


def encode_json(fields: Mapping[str, Any] | Sequence[Mapping[str, Any]], what: str) -> bytes:
    """Encode a mapping or a list of them, which may hold read-only views of objects.

    Raises:
        MalformedObjectError: If it holds what JSON cannot express.
    """
    try:
        return msgspec.json.encode(fields, enc_hook=_plain)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise MalformedObjectError(f"{what} cannot be written as JSON: {error}") from None


def _fields(resource_type: ResourceType[Any], obj: object) -> dict[str, Any]:
    if isinstance(obj, Resource):
        return obj.to_dict()
    if isinstance(obj, Mapping):
        return dict(cast("Mapping[str, Any]", obj))
    try:
        fields = msgspec.to_builtins(obj, enc_hook=_plain)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise MalformedObjectError(f"the {resource_type} object cannot be written as JSON: {error}") from None
    if not isinstance(fields, dict):
        raise MalformedObjectError(f"a {type(obj).__name__} is not a {resource_type} object")
    return cast("dict[str, Any]", fields)


def _plain(value: object) -> object:
    if isinstance(value, Resource):
        return value.to_dict()
    if isinstance(value, ReadOnlyMap | ReadOnlyList):
        return thaw(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")
