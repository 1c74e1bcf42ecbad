"""Desired children of an object, their marks, and the ownership of existing objects.

A child is an object of a declared kind that ``ctx.children`` applied. Its owner reference names its owner, and a label
and an annotation distinguish it from other objects of the owner. A child in another namespace, or one that the garbage
collector must not delete, has an annotation with the owner's key instead of an owner reference, and stays until the
owner's cleanup prunes it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, final

import msgspec

from deltaloop.api.json_values import is_mapping, mapping, text
from deltaloop.api.keys import join_key
from deltaloop.api.references import ObjectReference
from deltaloop.api.resource import OwnerReference, Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.requests import Mapped, Mapper, owner_key
from deltaloop.runtime.objects.errors import InvalidChildrenError
from deltaloop.runtime.objects.ownership import set_controller_reference

OWNER_UID: Final = "deltaloop.dev/owner-uid"
APPLIED_BY: Final = "deltaloop.dev/applied-by"
"""Annotation with the name of the controller that applied a child."""
APPLIED_HASH: Final = "deltaloop.dev/applied-hash"
"""Annotation with a hash of the last applied configuration."""
OWNER: Final = "deltaloop.dev/owner"
"""Annotation with the owner's key, for children without an owner reference."""
OWNER_INDEX: Final = OWNER_UID
CHILD_VERBS: Final = ("create", "patch", "delete")
_SERVERS: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
"""Fields that only the server sets. Desired objects that were read from the server can contain them."""


@final
class ChildKind(msgspec.Struct, frozen=True):
    """A declared kind of children, cached in one namespace or (None) in all."""

    kind: ResourceType[Any]
    namespace: str | None
    in_shares: bool = False
    """True if each process caches only the objects in namespaces of its share."""


class Identity(NamedTuple):
    """Identity of an object across the versions of its kind."""

    group: str
    kind: str
    namespace: str
    name: str


@final
class Child(msgspec.Struct, frozen=True, kw_only=True):
    """A desired child.

    ``body`` is the configuration to apply, and its hash ``fingerprint`` never leaves the process.
    """

    kind: ResourceType[Any]
    namespace: str
    name: str
    body: dict[str, object]
    fingerprint: str

    def __repr__(self) -> str:
        return f"Child(kind={self.kind!r}, namespace={self.namespace!r}, name={self.name!r})"

    @property
    def reference(self) -> ObjectReference:
        kind = self.kind
        return ObjectReference(api_version=kind.api_version, kind=kind.kind, namespace=self.namespace, name=self.name)

    @property
    def identity(self) -> Identity:
        return Identity(self.kind.group, self.kind.kind, self.namespace, self.name)


class Standing(StrEnum):
    """Relation of an existing object to the owner of a desired child with the same name."""

    MISSING = "there is none"
    OURS = "it is the owner's"
    GOING = "it is being deleted"
    OF_PREDECESSOR = "it belongs to an earlier owner of the same name; the garbage collector takes it"
    ANOTHERS = "something else controls it"
    NOBODYS = "nothing controls it"


def owner_uids(obj: Resource) -> tuple[str, ...]:
    """Return the index values of an object: the UID of its controlling owner, and its owner label."""
    found = [reference.uid for reference in obj.owner_references if reference.controller]
    return tuple(dict.fromkeys((*found, *filter(None, [obj.labels.get(OWNER_UID)]))))


def child_owner(own: ResourceType[Any], controller: str) -> Mapper:
    by_reference = owner_key(own)

    def map_child(obj: Resource) -> Mapped:
        yield from by_reference(obj)
        marked = controlling_owner(obj)
        if marked is not None and marked.kind == controller and marked.name and obj.controller_owner is None:
            yield marked.name

    return map_child


def controlling_owner(obj: Resource) -> OwnerReference | None:
    """Return the controlling owner from the owner reference, or from the marks of a child without one."""
    found, uid = obj.controller_owner, obj.labels.get(OWNER_UID)
    if found is not None or uid is None:
        return found
    annotations = obj.annotations
    return OwnerReference(kind=annotations.get(APPLIED_BY, ""), name=annotations.get(OWNER, ""), uid=uid)


def standing(present: Resource | None, *, owner: Resource, own: ResourceType[Any], controller: str) -> Standing:
    if present is None:
        return Standing.MISSING
    found = controlling_owner(present)
    if found is None:
        return Standing.NOBODYS
    if found.uid == owner.uid:
        return Standing.OURS if present.deletion_timestamp is None else Standing.GOING
    group = found.api_version.rpartition("/")[0]
    if (group, found.kind, found.name) == (own.group, own.kind, owner.name):
        return Standing.OF_PREDECESSOR
    # The garbage collector does not delete objects that have only marks.
    return Standing.OURS if (found.kind, found.name) == (controller, owner.key) else Standing.ANOTHERS


def identity_of(obj: Resource) -> Identity:
    return Identity(obj.api_version.rpartition("/")[0], obj.kind, obj.namespace, obj.name)


def may_be_pruned(present: Resource, owner_uid: str, controller: str) -> bool:
    """Return whether the controller applied an object for an owner, and the object is not being deleted."""
    controlling = present.controller_owner
    return (
        present.labels.get(OWNER_UID) == owner_uid
        and (controlling is None or controlling.uid == owner_uid)
        and present.annotations.get(APPLIED_BY) == controller
        and present.deletion_timestamp is None
    )


def desired_child(
    declared: ChildKind,
    fields: Mapping[str, object],
    *,
    owner: Resource,
    own: ResourceType[Any],
    controller: str,
    garbage_collected: bool = True,
) -> Child:
    """Return the child to apply for a desired object; raises InvalidChildrenError or AlreadyOwnedError."""
    kind = declared.kind
    metadata = {name: value for name, value in mapping(fields.get("metadata")).items() if name not in _SERVERS}
    name = text(metadata.get("name"))
    if not name:
        raise InvalidChildrenError(f"of a child of kind {kind} must be a constant name.", argument="metadata.name")
    namespace = text(metadata.get("namespace")) or (owner.namespace if kind.namespaced else "")
    shown = f"{kind} {join_key(namespace, name)}"
    if namespace and not kind.namespaced:
        raise InvalidChildrenError(
            f"of {shown} must not be set for a cluster-scoped kind.", argument="metadata.namespace"
        )
    if kind.namespaced and not namespace:
        raise InvalidChildrenError(
            f"of {shown} must be set: {owner.key} is cluster-scoped.", argument="metadata.namespace"
        )
    if declared.namespace not in (None, namespace):
        raise InvalidChildrenError(
            f"of {shown} must be {declared.namespace}, as watched.", argument="metadata.namespace"
        )
    elsewhere = bool(owner.namespace) and namespace != owner.namespace
    by_marks = elsewhere or not garbage_collected
    if by_marks and not owner.finalizers:
        why = "it is in another namespace" if elsewhere else "of garbage_collected=False"
        raise InvalidChildrenError(
            f"must be set: deleting the owner {owner.key} would not delete {shown}, because {why}. "
            "Declare @dl.controller(finalizer=...), and call ctx.children.apply(prune_all=True) in the cleanup.",
            argument="finalizer",
        )
    if namespace:
        metadata["namespace"] = namespace
    body: dict[str, object] = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    body.update((field, value) for field, value in fields.items() if field not in body)
    if _is_secret(kind):
        _store_string_data(body)
    if by_marks:
        _mark(metadata, "annotations", OWNER, owner.key, shown)
    else:
        set_controller_reference(body, owner, own)
    _mark(metadata, "labels", OWNER_UID, owner.uid, shown)
    _mark(metadata, "annotations", APPLIED_BY, controller, shown)
    mapping(metadata["annotations"]).pop(APPLIED_HASH, None)  # the object may have been read from the server
    shown_hash = _hash({**body, "data": sorted(mapping(body.get("data")))} if _is_secret(kind) else body)
    _mark(metadata, "annotations", APPLIED_HASH, shown_hash, shown)
    fingerprint = _hash(body) if _is_secret(kind) else shown_hash
    return Child(kind=kind, namespace=namespace, name=name, body=body, fingerprint=fingerprint)


def refuse_namesakes(children: Iterable[Child]) -> None:
    """Reject two desired children of the same kind and name by InvalidChildrenError."""
    seen: set[Identity] = set()
    for child in children:
        if child.identity in seen:
            raise InvalidChildrenError(
                "must be unique among the children. Rename one of them.", argument=str(child.reference)
            )
        seen.add(child.identity)


def _is_secret(kind: ResourceType[Any]) -> bool:
    return kind.kind == "Secret" and not kind.group


def _store_string_data(body: dict[str, object]) -> None:
    """Convert ``stringData`` to the stored field ``data``, so that keys that are no longer desired are removed."""
    sent = body.pop("stringData", None)
    if is_mapping(sent):
        encoded = {name: b64encode(text(value).encode()).decode() for name, value in sent.items()}
        body["data"] = {**mapping(body.get("data")), **encoded}


def _mark(metadata: dict[str, object], field: str, name: str, value: str, shown: str) -> None:
    present = metadata.get(field)
    if present is not None and not is_mapping(present):
        raise InvalidChildrenError(f"of {shown} must be a mapping of strings.", argument=f"metadata.{field}")
    metadata[field] = {**mapping(present), name: value}


def _hash(body: dict[str, object]) -> str:
    from hashlib import sha256

    return sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()[:32]
