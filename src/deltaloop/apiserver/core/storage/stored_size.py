"""Size of the etcd request for an object on a real server.

Custom resources, CRDs and APIServices are JSON there, and other kinds protobuf, whose size is estimated from the types
with an error of a few bytes per field.

Source: etcd server/etcdserver/v3_server.go (``MaxRequestBytes``); apiserver pkg/storage/etcd3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from deltaloop.api.json_values import is_mapping
from deltaloop.schemas.types import TypeNode

MAX_REQUEST: Final = 1536 * 1024 - 16
"""Maximum size of an etcd request in bytes, without etcd's header."""
MAX_STORE: Final = 2 * 1024 * 1024 * 1024
"""Maximum total size of all objects in bytes, like etcd's database limit."""
_REST: Final = 135  # comparison, two copies of the key, and request frame
_ENVELOPE: Final = 40  # envelope of an object in protobuf
_FRAME: Final = 4  # number and length of a field


def protobuf_size(node: TypeNode, fields: Mapping[str, object]) -> int:
    return _ENVELOPE + _size(node, fields)


def request_size(size: int) -> int:
    return size + _REST


def _size(node: TypeNode | None, value: object) -> int:
    if isinstance(value, str):
        return _FRAME + (len(value) if value.isascii() else len(value.encode(errors="replace")))
    if is_mapping(value):
        if node is None or not node.fields:
            # Maps encode their keys. Untyped values, such as managed fields, are encoded as JSON.
            below = node.other if node is not None else None
            if below is None:
                return _FRAME + len(msgspec.json.encode(value))
            return sum(2 * _FRAME + len(key) + _size(below, inner) for key, inner in value.items())
        return _FRAME + sum(_size(node.fields.get(name, node.other), inner) for name, inner in value.items())
    if isinstance(value, list):
        below = node.items if node is not None else None
        return sum(_size(below, item) for item in cast("list[object]", value))
    return _FRAME
