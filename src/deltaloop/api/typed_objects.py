"""Objects of the class of a kind, where only what they are called matters: owners, and what events are about."""

from __future__ import annotations

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import plain_fields
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType


def named_resource(obj: object) -> Resource | None:
    """Return an object of a kind's class as a Resource of its metadata alone; None for what is of no such class.

    Raises:
        MalformedObjectError: If it has no metadata.
    """
    try:
        kind = ResourceType.of(type(obj))
    except InvalidArgumentError:
        return None
    metadata = plain_fields(getattr(obj, "metadata", None))
    return Resource.from_dict({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata})
