"""Reduce objects to their metadata if the server sent complete objects, like some aggregated API servers.

The objects keep the kind ``PartialObjectMetadata``, so that the server rejects updates with them.

Source: client-go metadata/metadata.go; Kubernetes API concepts, "Metadata-only fetches".
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource, with_stored
from deltaloop.client.verbs.resource_list import ResourceList

_KIND: Final = b'"PartialObjectMetadata"'
_BEFORE: Final = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


class _Parts(msgspec.Struct, gc=False):
    metadata: msgspec.Raw
    kind: msgspec.Raw = msgspec.Raw(b"")


_decode: Final = msgspec.json.Decoder(_Parts).decode


def metadata_of(obj: Resource) -> Resource:
    """Return the ``PartialObjectMetadata`` of an object, or raise MalformedObjectError."""
    try:
        parts = _decode(obj.raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedObjectError(f"cannot extract the metadata of {obj!r}: {type(error).__name__}") from None
    if bytes(parts.kind) == _KIND:
        return obj
    return with_stored(obj, b"".join((_BEFORE, bytes(parts.metadata), b"}")))


def metadata_of_list(page: ResourceList[Resource]) -> ResourceList[Resource]:
    return replace(page, items=tuple(metadata_of(item) for item in page.items))
