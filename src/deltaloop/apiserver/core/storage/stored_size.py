"""The size of an object where a real server stores it: one request to etcd.

Custom resources, CRDs and APIServices are stored as JSON, all other kinds as protobuf, which is shorter. Its size is
computed from the types, and is exact to a few bytes for each field.

Source: etcd server/etcdserver/v3_server.go (``MaxRequestBytes``); apiserver pkg/storage/etcd3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from deltaloop.api.json_values import is_mapping
from deltaloop.schemas.types import TypeNode

MAX_REQUEST: Final = 1536 * 1024 - 16
"""Bytes of a request to etcd, without the header that etcd adds."""
MAX_STORE: Final = 2 * 1024 * 1024 * 1024
"""Bytes of all objects, which is how large the database of etcd may be."""
_REST: Final = 135  # the comparison, the key twice, and the frame of the request
_ENVELOPE: Final = 40  # of an object in protobuf
_FRAME: Final = 4  # number and length of a field


def protobuf_size(node: TypeNode, fields: Mapping[str, object]) -> int:
    """Return about how many bytes an object of a built-in kind has in protobuf."""
    return _ENVELOPE + _size(node, fields)


def request_size(size: int) -> int:
    """Return the size of the request that stores an object of so many bytes."""
    return size + _REST


def _size(node: TypeNode | None, value: object) -> int:
    if isinstance(value, str):
        return _FRAME + (len(value) if value.isascii() else len(value.encode(errors="replace")))
    if is_mapping(value):
        if node is None or not node.fields:
            # A map writes its keys. What has no type, such as the fields of a manager, is written as JSON.
            below = node.other if node is not None else None
            if below is None:
                return _FRAME + len(msgspec.json.encode(value))
            return sum(2 * _FRAME + len(key) + _size(below, inner) for key, inner in value.items())
        return _FRAME + sum(_size(node.fields.get(name, node.other), inner) for name, inner in value.items())
    if isinstance(value, list):
        below = node.items if node is not None else None
        return sum(_size(below, item) for item in cast("list[object]", value))
    return _FRAME
