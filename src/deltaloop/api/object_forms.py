"""Convert objects of any form to ``Resource``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import write_json
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import resource_type_of


def as_resource(obj: object, what: str = "the object") -> Resource:
    """Return a ``Resource``, mapping or typed object as a ``Resource``; ``what`` is its name in messages."""
    if isinstance(obj, Resource):
        return obj
    if isinstance(obj, Mapping):
        return Resource.from_dict(cast("Mapping[str, Any]", obj))
    kind = resource_type_of(type(obj))
    if kind is None:
        raise InvalidArgumentError(
            f"must be a Resource, a mapping, or an object of a @custom_resource class, got {type(obj).__name__}.",
            argument=what,
        )
    return Resource.from_json(write_json(obj, what), kind)
