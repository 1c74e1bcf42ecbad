"""Owner references on objects that are to be written: pure functions of an object's fields.

They change a mutable object (``Resource.edit()``, a dict that is to be created, or an object of a class whose
``metadata`` is an ``ObjectMeta``) and send nothing.

Source: controller-runtime pkg/controller/controllerutil/controllerutil.go.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final, TypeAlias, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import join_key
from deltaloop.api.object_forms import as_resource
from deltaloop.api.object_meta import ObjectMeta
from deltaloop.api.references import controller_reference
from deltaloop.api.resource import OwnerReference, Resource
from deltaloop.api.resource_type import TypedKind
from deltaloop.runtime.errors import OwnerGoneError

_FOREGROUND: Final = "foregroundDeletion"

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
    obj: MutableObject | object, owner: object, resource_type: TypedKind[Any] | str | None = None
) -> None:
    """Make ``owner`` the controller of ``obj``: it goes when the owner goes, and its changes reconcile the owner.

    Args:
        obj: The object to write, a dict or an object of a class; changed in place.
        owner: Its owner to be, as a client has read it: a ``Resource``, or an object of a class.
        resource_type: The owner's kind or class, or its name (``apps/v1/Deployment``), if the owner does not say it
            itself.

    Raises:
        AlreadyOwnedError: If something else controls it.
        InvalidArgumentError: If the owner lives in another namespace (an object without ``metadata.namespace`` has
            none), has no uid, or its kind is named wrongly; or if ``obj`` cannot be changed.
        OwnerGoneError: If the owner is being deleted in the foreground: the object would be deleted at once.
    """
    owning = owner if isinstance(owner, Resource) else as_resource(owner, "the owner")
    _set(obj, _controller_reference(owning, resource_type), owning)


def set_owner_reference(
    obj: MutableObject | object, owner: object, resource_type: TypedKind[Any] | str | None = None
) -> None:
    """Make ``owner`` an owner of ``obj``, one of several perhaps: the object goes when all of them are gone.

    The arguments are those of ``set_controller_reference``.

    Raises:
        InvalidArgumentError: If the owner lives in another namespace (an object without ``metadata.namespace`` has
            none), has no uid, or its kind is named wrongly; or if ``obj`` cannot be changed.
        OwnerGoneError: If the owner is being deleted in the foreground: the object would be deleted at once.
    """
    owning = owner if isinstance(owner, Resource) else as_resource(owner, "the owner")
    full = _controller_reference(owning, resource_type)
    plain = OwnerReference(api_version=full.api_version, kind=full.kind, name=full.name, uid=full.uid)
    _set(obj, plain, owning)


def _controller_reference(owner: Resource, resource_type: TypedKind[Any] | str | None) -> OwnerReference:
    if not isinstance(resource_type, str):
        return controller_reference(owner, resource_type)
    api_version, _, kind = resource_type.rpartition("/")
    if not (api_version and kind):
        raise InvalidArgumentError(f"{resource_type!r} names no kind; write it like v1/Pod or apps/v1/Deployment")
    return msgspec.structs.replace(controller_reference(owner), api_version=api_version, kind=kind)


def _set(obj: object, reference: OwnerReference, owner: Resource) -> None:
    metadata = _metadata(obj)
    present: list[dict[str, Any]]
    if isinstance(metadata, ObjectMeta):
        namespace, name = metadata.namespace, metadata.name
        present = msgspec.to_builtins(metadata.owner_references)
    else:
        namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
        present = [*(metadata.get("ownerReferences") or ())]
    if owner.namespace and owner.namespace != namespace:
        where = f"namespace {namespace!r}" if namespace else "no namespace"
        raise InvalidArgumentError(
            f"{owner.key} cannot own an object with {where}: an owner with a namespace owns objects there only;"
            " set the object's metadata.namespace before its owner"
        )
    if owner.deletion_timestamp is not None and _FOREGROUND in owner.finalizers:
        problem = "is being deleted in the foreground, so the garbage collector would delete them at once"
        raise OwnerGoneError(f"{reference.kind} {owner.key}", f"{problem}. Leave out the owner reference")
    if not reference.uid:
        raise InvalidArgumentError(
            f"{owner.key} has no uid: only an object that was read from the server can own another"
        )
    written = msgspec.to_builtins(reference)
    place: int | None = None
    for index, known in enumerate(present):
        if known == written or _is_same(known, reference):
            place = index if place is None else place
        elif reference.controller and known.get("controller"):
            raise AlreadyOwnedError(join_key(namespace, name), msgspec.convert(known, OwnerReference))
    if place is None:
        present += (written,)
    else:
        present[place] = written
    if isinstance(metadata, ObjectMeta):
        metadata.owner_references = msgspec.convert(present, list[OwnerReference])
    else:
        metadata["ownerReferences"] = present


def _is_same(known: Mapping[str, Any], reference: OwnerReference) -> bool:
    """Tell whether two references name the same owner: group, kind and name, as upstream; the version may differ."""
    if (known.get("uid"), known.get("kind"), known.get("name")) != (reference.uid, reference.kind, reference.name):
        return False
    version = str(known.get("apiVersion") or "")
    return version.rpartition("/")[0] == reference.api_version.rpartition("/")[0]


def _metadata(obj: Any) -> MutableMapping[str, Any] | ObjectMeta:
    found: Any
    if type(obj) is dict or isinstance(obj, MutableMapping):
        found = obj.get("metadata")
        if found is None:
            found = obj["metadata"] = {}
    else:
        found = getattr(obj, "metadata", None)
    if type(found) is not dict and not isinstance(found, ObjectMeta | MutableMapping):
        raise InvalidArgumentError(
            "the object's metadata cannot be changed; give a dict, such as Resource.edit() returns, or an object of a"
            " class whose metadata is an ObjectMeta"
        )
    return found
