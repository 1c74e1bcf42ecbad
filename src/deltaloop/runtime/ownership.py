"""Owner references on objects that are to be written: pure functions of an object's fields.

They change a mutable object (``Resource.edit()``, or a dict that is to be created) and send nothing.

Source: controller-runtime pkg/controller/controllerutil/controllerutil.go.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias, cast, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import ObjectReference, controller_reference
from deltaloop.api.resource import OwnerReference, Resource
from deltaloop.api.resource_type import TypedKind, as_kind
from deltaloop.api.typed_objects import named_resource
from deltaloop.root_error import DeltaloopError

MutableObject: TypeAlias = MutableMapping[str, Any]


@final
class AlreadyOwnedError(DeltaloopError):
    """An object has another controller already, and can have one only.

    Attributes:
        object: The object that has another controller already.
        owner: Who controls it.
    """

    def __init__(self, obj: str, owner: OwnerReference) -> None:
        """Keep the two."""
        super().__init__(f"object {obj} is already owned by another {owner.kind} controller {owner.name}")
        self.object = obj
        self.owner = owner


def set_controller_reference(
    obj: MutableObject, owner: object, resource_type: TypedKind[Any] | str | None = None
) -> None:
    """Make ``owner`` the controller of ``obj``: it goes when the owner goes, and its changes reconcile the owner.

    Args:
        obj: The object to write; changed in place.
        owner: Its owner to be: a Resource, or an object of a kind's class.
        resource_type: The owner's kind, or its name (``apps/v1/Deployment``), if the owner does not say it itself.

    Raises:
        AlreadyOwnedError: If something else controls it.
        InvalidArgumentError: If the owner lives in another namespace (an object without ``metadata.namespace`` has
            none), has no uid, is no object, or its kind is named wrongly.
    """
    known = _as_resource(owner)
    _set(obj, _controller_reference(known, resource_type), known)


def set_owner_reference(obj: MutableObject, owner: object, resource_type: TypedKind[Any] | str | None = None) -> None:
    """Make ``owner`` an owner of ``obj``, one of several perhaps: the object goes when all of them are gone.

    Raises:
        InvalidArgumentError: If the owner lives in another namespace (an object without ``metadata.namespace`` has
            none), has no uid, is no object, or its kind is named wrongly.
    """
    known = _as_resource(owner)
    full = _controller_reference(known, resource_type)
    plain = OwnerReference(api_version=full.api_version, kind=full.kind, name=full.name, uid=full.uid)
    _set(obj, plain, known)


def _as_resource(owner: object) -> Resource:
    if isinstance(owner, Resource):
        return owner
    if (named := named_resource(owner)) is not None:
        return named
    raise InvalidArgumentError(f"an owner is a Resource or an object of a kind's class, not a {type(owner).__name__}")


def _controller_reference(owner: Resource, resource_type: TypedKind[Any] | str | None) -> OwnerReference:
    named = None if resource_type is None else as_kind(resource_type)
    if not isinstance(named, str):
        return controller_reference(owner, named)
    api_version, _, kind = named.rpartition("/")
    if not (api_version and kind):
        raise InvalidArgumentError(f"{named!r} names no kind; write it like v1/Pod or apps/v1/Deployment")
    return msgspec.structs.replace(controller_reference(owner), api_version=api_version, kind=kind)


def _set(obj: MutableObject, reference: OwnerReference, owner: Resource) -> None:
    metadata = _metadata(obj)
    namespace = metadata.get("namespace") or ""
    if owner.namespace and owner.namespace != namespace:
        where = f"namespace {namespace!r}" if namespace else "no namespace"
        raise InvalidArgumentError(
            f"{owner.key} cannot own an object with {where}: an owner with a namespace owns objects there only;"
            " set the object's metadata.namespace before its owner"
        )
    if not reference.uid:
        raise InvalidArgumentError(
            f"{owner.key} has no uid: only an object that was read from the server can own another"
        )
    present = [dict(known) for known in cast("Sequence[Mapping[str, Any]]", metadata.get("ownerReferences") or [])]
    place = len(present)
    for index, known in enumerate(present):
        if _is_same(known, reference):
            place = min(place, index)
        elif reference.controller and known.get("controller"):
            name = ObjectReference(namespace=namespace, name=metadata.get("name") or "").key
            raise AlreadyOwnedError(name, msgspec.convert(known, OwnerReference))
    present[place : place + 1] = [msgspec.to_builtins(reference)]
    metadata["ownerReferences"] = present


def _is_same(known: Mapping[str, Any], reference: OwnerReference) -> bool:
    """Tell whether two references name the same owner: group, kind and name, as upstream; the version may differ."""
    if (known.get("uid"), known.get("kind"), known.get("name")) != (reference.uid, reference.kind, reference.name):
        return False
    version = known.get("apiVersion") or ""
    return (
        version == reference.api_version or str(version).rpartition("/")[0] == reference.api_version.rpartition("/")[0]
    )


def _metadata(obj: MutableObject) -> MutableMapping[str, Any]:
    found = obj.get("metadata")
    if found is None:
        found = obj["metadata"] = dict[str, Any]()
    if not isinstance(found, MutableMapping):
        raise InvalidArgumentError(
            "the object's metadata cannot be changed; give a dict, such as Resource.edit() returns"
        )
    return cast("MutableMapping[str, Any]", found)
