"""Takes ``metadata.managedFields`` off an object: often a third of its bytes, and of use to few readers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import DECODE_ERRORS, Resource

_KEY: Final = "managedFields"
_decode_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def strip_managed_fields(obj: Resource) -> Resource:
    """Return the object without ``metadata.managedFields``; the object itself if it has none.

    Made to be the ``transform`` of an informer: what is cached is smaller then. An update with such an object leaves
    the server's fields as they are.

    Raises:
        MalformedObjectError: If it is not an object with metadata.

    Source: controller-runtime pkg/cache, ``TransformStripManagedFields``.
    """
    if b'"managedFields"' not in obj.raw:
        return obj
    try:
        parts: dict[str, Any] = _decode_parts(obj.raw)
        metadata = _decode_parts(parts["metadata"])
    except (*DECODE_ERRORS, KeyError) as error:
        raise MalformedObjectError(f"the object has no metadata that can be read: {type(error).__name__}") from None
    if metadata.pop(_KEY, None) is None:
        return obj
    parts["metadata"] = metadata
    return Resource(msgspec.json.encode(parts), obj.metadata, obj.resource_type)
