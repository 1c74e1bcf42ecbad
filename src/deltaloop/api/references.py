"""References to objects, and triggers of reconciles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import write_json
from deltaloop.api.keys import join_key
from deltaloop.api.resource import OwnerReference, Resource
from deltaloop.api.resource_type import ResourceType, TypedKind, resource_type_of


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


class ObjectReference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Reference to an object, as in the ``involvedObject`` of an Event."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""

    @property
    def key(self) -> str:
        """``namespace/name`` or ``name``."""
        return join_key(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind or 'object'} {self.key}"


def reference_to(obj: object, resource_type: TypedKind[Any] | None = None) -> ObjectReference:
    """Return a reference to an object.

    Args:
        obj: ``Resource``, mapping, or object of a class from ``custom_resource``.
        resource_type: Kind of the object. None means the kind that the object contains.

    Raises:
        InvalidArgumentError: If ``obj`` is not an object.
    """
    obj = as_resource(obj)
    known = _kind_of(resource_type) or obj.resource_type
    return ObjectReference(
        api_version=known.api_version if known else obj.api_version,
        kind=known.kind if known else obj.kind,
        namespace=obj.namespace,
        name=obj.name,
        uid=obj.uid,
        resource_version=obj.resource_version,
    )


def controller_reference(owner: object, resource_type: TypedKind[Any] | None = None) -> OwnerReference:
    """Return an owner reference that marks ``owner`` as the controlling owner of another object.

    Args:
        owner: ``Resource``, mapping, or object of a class from ``custom_resource``.
        resource_type: Kind of the owner. None means the kind that the owner contains.

    Raises:
        InvalidArgumentError: If ``owner`` is not an object.

    Source: apimachinery pkg/apis/meta/v1/controller_ref.go, ``NewControllerRef``.
    """
    owner = as_resource(owner, "the owner")
    known = _kind_of(resource_type) or owner.resource_type
    return OwnerReference(
        api_version=known.api_version if known else owner.api_version,
        kind=known.kind if known else owner.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )


def _kind_of(resource_type: TypedKind[Any] | None) -> ResourceType[Any] | None:
    return ResourceType.of(resource_type) if isinstance(resource_type, type) else resource_type


class Trigger(msgspec.Struct, frozen=True, gc=False):
    """Cause for which a key was queued, kept until a reconcile of the key succeeds.

    Attributes:
        source: Source with low cardinality: ``informer``, ``owner``, ``timer``, ``retry``, ``manual``, ...
        verb: Type of the event: ``add``, ``update``, ``delete``, ``resync``, ...
        reference: Object of the event, or None for a timer.
        old_resource_version: Resource version before the event, or empty.
        new_resource_version: Resource version after the event, or empty.
        at: Time of the observation in seconds on the event loop's monotonic clock.
        origin: Reconcile of this program that caused the event, such as ``self, reconcile 41``, or empty for others.
            Sharded programs add the range.
    """

    source: str
    verb: str
    reference: ObjectReference | None = None
    old_resource_version: str = ""
    new_resource_version: str = ""
    at: float = 0.0
    origin: str = ""

    def __str__(self) -> str:
        versions = "→".join(part for part in (self.old_resource_version, self.new_resource_version) if part)
        subject = f" {self.reference}" if self.reference else ""
        origin = f" by {self.origin}" if self.origin else ""
        return f"{self.source} {self.verb}{subject}" + (f" ({versions})" if versions else "") + origin
