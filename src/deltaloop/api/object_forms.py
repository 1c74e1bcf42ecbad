"""An object in whichever form a program has it, as a ``Resource``.

Functions that look at any object take all forms: a ``Resource``, a mapping as JSON has it, an object of a class that
``custom_resource`` made a kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import write_json
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import resource_type_of


def as_resource(obj: object, what: str = "the object") -> Resource:
    """Return an object as a ``Resource``; one that is a ``Resource`` already as it is.

    Args:
        obj: A ``Resource``, a mapping, or an object of a class of ``custom_resource``.
        what: Names it in an error.

    Raises:
        InvalidArgumentError: If it is something else.
        MalformedObjectError: If it has no metadata, or holds what JSON cannot say.
    """
    if isinstance(obj, Resource):
        return obj
    if isinstance(obj, Mapping):
        return Resource.from_dict(cast("Mapping[str, Any]", obj))
    kind = resource_type_of(type(obj))
    if kind is None:
        raise InvalidArgumentError(
            f"{what} is a {type(obj).__name__}: give a Resource, a mapping, or an object of a class of"
            " @custom_resource, as a client has read it"
        )
    return Resource.from_json(write_json(obj, what), kind)
