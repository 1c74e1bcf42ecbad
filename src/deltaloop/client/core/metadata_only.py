"""Objects of which only the metadata is wanted: what is cut off if a server sends more.

A server is asked for ``PartialObjectMetadata`` by the Accept header (``core/accept.py``); kube-apiserver gives it for
every kind it serves, some servers behind the aggregation layer know the whole object only. What those send is cut down
here to what the others would have sent, so that a cache never holds more than was asked for.

The kind that such an object names is ``PartialObjectMetadata``, not its own. That is kept: sent back by an update it is
refused, where an object under its own kind and without a spec might be taken. ``Resource.resource_type`` says what it
is.

Source: client-go metadata/metadata.go; Kubernetes API concepts, "Metadata-only fetches".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

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
    """Return the object's ``PartialObjectMetadata``: the object itself if the server sent nothing else.

    Raises:
        MalformedObjectError: If it cannot be read any more; it could when it was made.
    """
    try:
        parts = _decode(obj.raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedObjectError(f"the metadata of {obj!r} cannot be cut out: {type(error).__name__}") from None
    if bytes(parts.kind) == _KIND:
        return obj
    return with_stored(obj, b"".join((_BEFORE, bytes(parts.metadata), b"}")))


def metadata_of_list(page: ResourceList[Resource]) -> ResourceList[Resource]:
    """Return a page with the metadata of its objects."""
    return replace(page, items=tuple(metadata_of(item) for item in page.items))
