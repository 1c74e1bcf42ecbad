"""How objects, lists and watch events look on the wire.

The store keeps objects without ``kind`` and ``apiVersion``; here they are put in front without decoding the object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.store import encode_object

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_decode: Final = msgspec.json.Decoder(dict[str, object]).decode
encode_json: Final = msgspec.json.Encoder().encode


def head(kind: str, api_version: str) -> bytes:
    """Return the beginning of an object's JSON, up to and without the comma after ``apiVersion``."""
    return b'{"kind":' + encode_json(kind) + b',"apiVersion":' + encode_json(api_version)


def whole_object(served: ServedResource, obj: Resource) -> bytes:
    """Return an object with its kind and version, as the codec of its resource reads it."""
    return head(served.type.kind, served.type.api_version) + b"," + _raw(served, obj)[1:]


def _raw(served: ServedResource, obj: Resource) -> bytes:
    """Return the bytes of an object as its version has it, without its kind."""
    if served.codec.serves_as_stored:
        return obj.raw
    fields = served.codec.load(_decode(obj.raw))
    return obj.raw if fields is None else encode_object(fields, resource_version=obj.resource_version)


def decode_object(served: ServedResource, obj: Resource) -> dict[str, object]:
    """Return an object as a new dict, with its kind and version first."""
    stored = _decode(obj.raw)
    fields = served.codec.load(stored)
    return {
        "kind": served.type.kind,
        "apiVersion": served.type.api_version,
        **(fields if fields is not None else stored),
    }


def with_resource_version(obj: Resource, revision: int) -> Resource:
    """Return the same object at another revision: how a watcher sees the last of it."""
    return Resource.from_json(encode_object(_decode(obj.raw), resource_version=str(revision)))


def list_metadata(
    revision: int, *, continue_: str = "", remaining: int | None = None, always_continue: bool = False
) -> dict[str, object]:
    """Return the metadata of a list; lists of custom resources say ``continue`` even when it is empty."""
    metadata: dict[str, object] = {}
    if continue_ or always_continue:
        metadata["continue"] = continue_
    if remaining:
        metadata["remainingItemCount"] = remaining
    metadata["resourceVersion"] = str(revision)
    return metadata


def object_list(served: ServedResource, objects: Iterable[Resource], metadata: Mapping[str, object]) -> bytes:
    """Return a list; only items that describe themselves carry their kind and version."""
    shown = whole_object if served.flags.self_described else _raw
    items = b",".join(shown(served, obj) for obj in objects)
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


def bookmark(served: ServedResource, revision: int, *, ends_initial_events: bool = False) -> dict[str, object]:
    """Return a bookmark's object: kind, version and a resource version."""
    metadata: dict[str, object] = {"resourceVersion": str(revision)}
    if ends_initial_events:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return {"kind": served.type.kind, "apiVersion": served.type.api_version, "metadata": metadata}
