"""Owner references of objects that you are about to write; the functions change a mutable object and send nothing.

Source: controller-runtime pkg/controller/controllerutil/controllerutil.go.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, cast, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import type_of
from deltaloop.api.keys import join_key
from deltaloop.api.references import as_resource
from deltaloop.api.resource import OwnerReference, Resource
from deltaloop.api.resource_type import ResourceType, TypedKind

if TYPE_CHECKING:
    from deltaloop.api.object_meta import ObjectMeta

_FOREGROUND: Final = "foregroundDeletion"

MutableObject: TypeAlias = "MutableMapping[str, Any]"


@final
class AlreadyOwnedError(DeltaloopError):
    """The object already has another controlling owner, and it can have only one.

    Attributes:
        object: Key of the object.
        owner: Its controlling owner.
    """

    def __init__(self, obj: str, owner: OwnerReference) -> None:
        super().__init__(f"object {obj} is already owned by another {owner.kind} controller {owner.name}")
        self.object = obj
        self.owner = owner


def set_controller_reference(
    obj: MutableObject | object, owner: object, resource_type: TypedKind[Any] | str | None = None
) -> None:
    """Make ``owner`` the controlling owner of ``obj``.

    The object is deleted with its owner, and its changes reconcile the owner.

    Args:
        obj: Object to write, a dict or an object of a class. It is changed in place.
        owner: Owner that a client has read, a ``Resource`` or an object of a class.
        resource_type: Kind, class or name (``apps/v1/Deployment``) of the owner's kind, if the owner does not specify
            it.

    Raises:
        AlreadyOwnedError: If the object has another controlling owner.
        InvalidArgumentError: If the owner is in another namespace (an object without ``metadata.namespace`` has none)
            or has no UID, if its kind is invalid, or if ``obj`` cannot be changed.
        OwnerGoneError: If the owner is being deleted in the foreground, because the object would be deleted
            immediately.
    """
    _set(obj, owner, resource_type)


def set_owner_reference(
    obj: MutableObject | object, owner: object, resource_type: TypedKind[Any] | str | None = None
) -> None:
    """Add ``owner`` to the owners of ``obj``, which is deleted when all of its owners are gone.

    The arguments are those of ``set_controller_reference``.

    Raises:
        InvalidArgumentError: If the owner is in another namespace (an object without ``metadata.namespace`` has none)
            or has no UID, if its kind is invalid, or if ``obj`` cannot be changed.
        OwnerGoneError: If the owner is being deleted in the foreground, because the object would be deleted
            immediately.
    """
    _set(obj, owner, resource_type, controls=False)


def _set(obj: Any, owner: object, resource_type: TypedKind[Any] | str | None, controls: bool = True) -> None:
    owning = owner if type(owner) is Resource else as_resource(owner, "the owner")
    if type(resource_type) is ResourceType:
        api_version, kind = resource_type.api_version, resource_type.kind
    else:
        api_version, kind = _kind_of(owning, resource_type)
    metadata: Any = obj.get("metadata") if type_of(obj) is dict else None
    if type_of(metadata) is not dict:
        metadata = _metadata(obj)
    present: list[dict[str, Any]]
    typed: ObjectMeta | None = None
    fields: MutableMapping[str, Any]
    if type_of(metadata) is dict or not _is_object_meta(metadata):
        fields = metadata
        namespace, present = fields.get("namespace") or "", fields.get("ownerReferences") or list[dict[str, Any]]()
    else:
        typed, fields = metadata, {}
        namespace, present = typed.namespace, msgspec.to_builtins(typed.owner_references)
    if owning.namespace and owning.namespace != namespace:
        where = f"namespace {namespace!r}" if namespace else "no namespace"
        raise InvalidArgumentError(
            f"must be the namespace of the owner {owning.key}, got {where}. Set it before the owner.",
            argument="metadata.namespace",
        )
    if owning.deletion_timestamp is not None and _FOREGROUND in owning.finalizers:
        problem = "is being deleted in the foreground, so the garbage collector would delete the children immediately"
        from deltaloop.runtime.objects.errors import OwnerGoneError

        raise OwnerGoneError(f"{kind} {owning.key}", f"{problem}. Omit the owner reference")
    if not owning.uid:
        raise InvalidArgumentError(
            f"must have a uid, got none in {owning.key}. Use an object that was read from the server.", argument="owner"
        )
    reference: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "name": owning.name, "uid": owning.uid}
    if controls:
        reference["controller"] = reference["blockOwnerDeletion"] = True
    if present == [reference]:
        return
    present = [*present]
    place: int | None = None
    for index, known in enumerate(present):
        if known == reference or _is_same(known, reference):
            place = index if place is None else place
        elif controls and known.get("controller"):
            name = fields.get("name") or "" if typed is None else typed.name
            raise AlreadyOwnedError(join_key(namespace, name), msgspec.convert(known, OwnerReference))
    if place is None:
        present += (reference,)
    else:
        present[place] = reference
    if typed is not None:
        typed.owner_references = msgspec.convert(present, list[OwnerReference])
    else:
        fields["ownerReferences"] = present


def _kind_of(owner: Resource, resource_type: TypedKind[Any] | str | None) -> tuple[str, str]:
    if isinstance(resource_type, str):
        api_version, _, kind = resource_type.rpartition("/")
        if not (api_version and kind):
            raise InvalidArgumentError(f"must be like v1/Pod, got {resource_type!r}.", argument="resource_type")
        return api_version, kind
    known = ResourceType.of(resource_type) if isinstance(resource_type, type) else resource_type or owner.resource_type
    return (owner.api_version, owner.kind) if known is None else (known.api_version, known.kind)


def _is_same(known: Mapping[str, Any], reference: Mapping[str, Any]) -> bool:
    """Compare group, kind, name and UID, but not the version, like upstream."""
    if any(known.get(field) != reference[field] for field in ("uid", "kind", "name")):
        return False
    group = str(reference["apiVersion"]).rpartition("/")[0]
    return str(known.get("apiVersion") or "").rpartition("/")[0] == group


def _metadata(obj: Any) -> MutableMapping[str, Any] | ObjectMeta:
    found: object
    if type_of(obj) is dict or isinstance(obj, MutableMapping):
        fields = cast("MutableMapping[str, Any]", obj)
        found = fields.get("metadata")
        if found is None:
            found = {}
            fields["metadata"] = found
    else:
        found = getattr(obj, "metadata", None)
    if type_of(found) is not dict and not isinstance(found, MutableMapping) and not _is_object_meta(found):
        raise InvalidArgumentError(
            "must have writable metadata. Pass a dict, such as the result of Resource.edit(), or an object whose "
            "metadata is an ObjectMeta.",
            argument="object",
        )
    return cast("MutableMapping[str, Any] | ObjectMeta", found)


def _is_object_meta(metadata: object) -> TypeGuard[ObjectMeta]:
    from deltaloop.api.object_meta import ObjectMeta  # for typed objects

    return isinstance(metadata, ObjectMeta)
