"""Encode an object (``Resource``, mapping or typed object) for the server.

For classes that define a kind, only fields that were set are written, because the server applies the same defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.json_values import type_of
from deltaloop.api.json_writing import plain_fields, plain_json, write_json
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType, definition_of


class OutgoingObject(msgspec.Struct, frozen=True, gc=False):
    """Encoded object with the metadata that a write needs; missing values are empty."""

    body: bytes
    name: str
    namespace: str
    version: str = ""
    generate_name: str = ""


def encode_object(resource_type: ResourceType[Any], obj: Any, body: bytes | None = None) -> OutgoingObject:
    """Encode an object, if ``body`` is not its JSON.

    Raises MalformedObjectError without metadata or for values that JSON cannot represent.
    """
    fields: dict[str, Any] = dict(obj) if type_of(obj) is dict else _fields(resource_type, obj)
    metadata: Mapping[str, Any] | None = fields.get("metadata")
    if metadata is None or (type_of(metadata) is not dict and not isinstance(metadata, Mapping)):
        raise MalformedObjectError(f"a {resource_type} must have metadata, got none.", path="metadata", given=True)
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or ""
    if not (type(name) is type(namespace) is str or (isinstance(name, str) and isinstance(namespace, str))):
        raise MalformedObjectError(
            f"{resource_type}: metadata.name and metadata.namespace must be strings.", path="metadata.name", given=True
        )
    if not fields.get("apiVersion"):
        fields["apiVersion"], body = resource_type.api_version, None
    if not fields.get("kind"):
        fields["kind"], body = resource_type.kind, None
    version = str(metadata.get("resourceVersion") or "")
    generated = "" if name else str(metadata.get("generateName") or "")
    body = body or plain_json(fields) or write_json(fields, f"the {resource_type} object")
    return OutgoingObject(body, name, namespace, version, generated)


def _fields(resource_type: ResourceType[Any], obj: object) -> dict[str, Any]:
    if isinstance(obj, Resource):
        return obj.to_dict()
    if isinstance(obj, Mapping):
        return dict(cast("Mapping[str, Any]", obj))
    if isinstance(obj, type):
        name = obj.__name__
        problem = f"a {resource_type} must be an object, got the class {name}. Write {name}(...)."
        raise MalformedObjectError(problem, given=True)
    from deltaloop.api.set_fields import set_fields

    try:
        fields = plain_fields(obj) if definition_of(type(obj)) is None else set_fields(obj)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise MalformedObjectError(f"cannot encode the {resource_type} as JSON: {error}", given=True) from None
    if not isinstance(fields, dict):
        raise MalformedObjectError(f"object must be a {resource_type}, got {type(obj).__name__}.", given=True)
    return cast("dict[str, Any]", fields)
