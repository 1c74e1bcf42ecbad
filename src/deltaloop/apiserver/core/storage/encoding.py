"""Encoding of objects, lists and watch events; ``kind`` and ``apiVersion`` are prepended without decoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import msgspec

from deltaloop.api.json_values import text
from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import ShardSelector
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.store import encode_object

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_decode: Final = msgspec.json.Decoder(dict[str, object]).decode
encode_json: Final = msgspec.json.Encoder().encode
_VERSIONED: Final = b'{"apiVersion":'
_WHOLE: Final = b'{"kind":'


def head(kind: str, api_version: str) -> bytes:
    """Return the start of an object's JSON through ``apiVersion``, without the comma."""
    return b'{"kind":' + encode_json(kind) + b',"apiVersion":' + encode_json(api_version)


def whole_object(served: ServedResource, obj: Resource) -> bytes:
    """Return an object with its kind and version, converted by the resource's codec."""
    return _whole(served, head(served.type.kind, served.type.api_version) + b",", obj)


def _whole(served: ServedResource, start: bytes, obj: Resource) -> bytes:
    raw = obj.raw
    if raw.startswith(_WHOLE):
        return raw
    raw = _loaded(served, obj, raw)
    # Drop the stored API version.
    return start + raw[raw.index(b",") + 1 if raw.startswith(_VERSIONED) else 1 :]


def stored_version(obj: Resource) -> str:
    """Return the API version of a stored object, or an empty string if it does not specify one."""
    raw = obj.raw
    return raw[len(_VERSIONED) + 1 : raw.index(b",") - 1].decode() if raw.startswith(_VERSIONED) else ""


def is_whole(obj: Resource) -> bool:
    """Return whether an object contains its kind and version because it was converted."""
    return obj.raw.startswith(_WHOLE)


def whole_resource(fields: Mapping[str, object], *, resource_version: str) -> Resource:
    """Return an object that contains its kind and version and is served unchanged."""
    bare = {name: value for name, value in fields.items() if name not in ("kind", "apiVersion")}
    start = head(text(fields.get("kind")), text(fields.get("apiVersion")))
    return Resource.from_json(start + b"," + encode_object(bare, resource_version=resource_version)[1:])


def _raw(served: ServedResource, obj: Resource) -> bytes:
    """Return the bytes of an object in the resource's version, without its kind."""
    return _loaded(served, obj, obj.raw)


def _loaded(served: ServedResource, obj: Resource, raw: bytes) -> bytes:
    if served.codec.serves_as_stored:
        return raw
    fields = served.codec.load(_decode(raw))
    return raw if fields is None else encode_object(fields, resource_version=obj.resource_version)


def decode_object(served: ServedResource, obj: Resource) -> dict[str, object]:
    """Decode an object into a new dict with kind and version first."""
    stored = _decode(obj.raw)
    if is_whole(obj):
        return stored
    fields = served.codec.load(stored)
    return {
        "kind": served.type.kind,
        "apiVersion": served.type.api_version,
        **(fields if fields is not None else stored),
    }


def with_resource_version(obj: Resource, revision: int) -> Resource:
    """Return the object with another resource version, for example for a deletion event."""
    fields = _decode(obj.raw)
    if is_whole(obj):
        return whole_resource(fields, resource_version=str(revision))
    return Resource.from_json(encode_object(fields, resource_version=str(revision)))


def list_metadata(
    revision: int,
    *,
    continue_: str = "",
    remaining: int | None = None,
    shard: ShardSelector | None = None,
    self_described: bool = False,
) -> dict[str, object]:
    """Return the metadata of a list.

    Lists of custom resources include an empty ``continue`` and never state the shard, like those of the real server.
    """
    metadata: dict[str, object] = {}
    if continue_ or self_described:
        metadata["continue"] = continue_
    if remaining:
        metadata["remainingItemCount"] = remaining
    metadata["resourceVersion"] = str(revision)
    if shard is not None and not self_described:
        metadata["shardInfo"] = {"selector": str(shard)}
    return metadata


def object_list(served: ServedResource, objects: Iterable[Resource], metadata: Mapping[str, object]) -> bytes:
    """Return a list. Only items of self-described resources contain their kind and version."""
    start = head(served.type.kind, served.type.api_version) + b","
    shown = partial(_whole, served, start) if served.flags.self_described else partial(_raw, served)
    begin = head(served.list_kind, served.type.api_version) + b',"metadata":' + encode_json(metadata) + b',"items":['
    # Join once, because each copy of a list of many megabytes blocks other threads.
    parts = [begin]
    for obj in objects:
        parts += (shown(obj), b",")
    if len(parts) > 1:
        parts.pop()
    parts.append(b"]}")
    return b"".join(parts)


def watch_line(event_type: str, body: bytes) -> bytes:
    return b'{"type":"' + event_type.encode() + b'","object":' + body + b"}\n"


def bookmark(served: ServedResource, revision: int, *, ends_initial_events: bool = False) -> dict[str, object]:
    metadata: dict[str, object] = {"resourceVersion": str(revision)}
    if ends_initial_events:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return {"kind": served.type.kind, "apiVersion": served.type.api_version, "metadata": metadata}
