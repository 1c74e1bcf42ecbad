"""How objects, lists and watch events look on the wire.

The store keeps objects without ``kind`` and ``apiVersion``; here they are put in front without decoding the object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.builtin.conversion import from_stored
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.store import encode_object
from deltaloop.schemas.decoding import decode_by_schema, prune_by_schema

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
encode_json: Final = msgspec.json.Encoder().encode


def head(kind: str, api_version: str) -> bytes:
    """Return the beginning of an object's JSON, up to and without the comma after ``apiVersion``."""
    return b'{"kind":' + encode_json(kind) + b',"apiVersion":' + encode_json(api_version)


def whole_object(served: ServedResource, obj: Resource) -> bytes:
    """Return an object with its kind and version; a custom resource is pruned and defaulted by its schema."""
    raw = obj.raw
    if served.converted:
        raw = _converted(served, obj)
    if served.schema:
        fields = _decode(raw)
        if _read_by_schema(served, fields):
            raw = encode_object(fields, resource_version=obj.resource_version)
    return head(served.type.kind, served.type.api_version) + b"," + raw[1:]


def _converted(served: ServedResource, obj: Resource) -> bytes:
    fields = from_stored(served.type.api_version, served.type.kind, _decode(obj.raw))
    return encode_object(fields, resource_version=obj.resource_version)


def decode_object(served: ServedResource, obj: Resource) -> dict[str, Any]:
    """Return an object as a new dict, with its kind and version first."""
    stored = _decode(obj.raw)
    if served.converted:
        stored = from_stored(served.type.api_version, served.type.kind, stored)
    fields = {"kind": served.type.kind, "apiVersion": served.type.api_version, **stored}
    _read_by_schema(served, fields)
    return fields


def _read_by_schema(served: ServedResource, fields: dict[str, Any]) -> bool:
    """Prune and default what was read, in place: defaults are those of the version that it is stored in."""
    if not served.storage_schema:
        return decode_by_schema(served.schema, fields)
    defaulted = decode_by_schema(served.storage_schema, fields)
    return prune_by_schema(served.schema, fields) or defaulted


def with_resource_version(obj: Resource, revision: int) -> Resource:
    """Return the same object at another revision: how a watcher sees the last of it."""
    return Resource.from_json(encode_object(_decode(obj.raw), resource_version=str(revision)))


def list_metadata(
    revision: int, *, continue_: str = "", remaining: int | None = None, always_continue: bool = False
) -> dict[str, Any]:
    """Return the metadata of a list; lists of custom resources say ``continue`` even when it is empty."""
    metadata: dict[str, Any] = {}
    if continue_ or always_continue:
        metadata["continue"] = continue_
    if remaining:
        metadata["remainingItemCount"] = remaining
    metadata["resourceVersion"] = str(revision)
    return metadata


def object_list(served: ServedResource, objects: Iterable[Resource], metadata: Mapping[str, Any]) -> bytes:
    """Return a list; only items that describe themselves carry their kind and version."""
    if served.flags.self_described:
        written = [whole_object(served, obj) for obj in objects]
    else:
        written = [_converted(served, obj) if served.converted else obj.raw for obj in objects]
    items = b",".join(written)
    return (
        head(served.list_kind, served.type.api_version)
        + b',"metadata":'
        + encode_json(metadata)
        + b',"items":['
        + items
        + b"]}"
    )


def watch_line(event_type: str, body: bytes) -> bytes:
    """Return one line of a watch stream."""
    return b'{"type":"' + event_type.encode() + b'","object":' + body + b"}\n"


def bookmark(served: ServedResource, revision: int, *, ends_initial_events: bool = False) -> dict[str, Any]:
    """Return a bookmark's object: kind, version and a resource version."""
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if ends_initial_events:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return {"kind": served.type.kind, "apiVersion": served.type.api_version, "metadata": metadata}
