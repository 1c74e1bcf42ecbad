"""References to objects, and triggers: why a key was queued."""

from __future__ import annotations

from typing import Any

import msgspec

from deltaloop.api.keys import join_key
from deltaloop.api.object_forms import as_resource
from deltaloop.api.resource import OwnerReference
from deltaloop.api.resource_type import ResourceType, TypedKind


class ObjectReference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Names one object, as in an Event's ``involvedObject``."""

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
    """Make a reference to an object; its kind comes from the object or from ``resource_type``.

    Args:
        obj: A ``Resource``, a mapping, or an object of a class of ``custom_resource``.
        resource_type: Its kind, if it does not say it itself.

    Raises:
        InvalidArgumentError: If it is no object.
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
    """Make the owner reference that marks ``owner`` as the controller of another object.

    Args:
        owner: A ``Resource``, a mapping, or an object of a class of ``custom_resource``.
        resource_type: Its kind, if it does not say it itself.

    Raises:
        InvalidArgumentError: If it is no object.

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
    """Why a key was queued: one cause, kept with the key until its reconcile has succeeded.

    Attributes:
        source: Where it came from, of low cardinality: ``informer``, ``owner``, ``timer``, ``retry``, ``manual``, ...
        verb: What happened: ``add``, ``update``, ``delete``, ``resync``, ...
        reference: The object it happened to, or None for a timer.
        old_resource_version: The object's version before, where there was one.
        new_resource_version: The object's version after, where there is one.
        at: Seconds on the monotonic clock of the event loop when it was observed.
        origin: Who caused it, if that was this program: ``self, reconcile 41``; empty if it was somebody else.
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
