"""Mapping of changes to keys and triggers.

If the mapper raises, the change waits in ``Unmapped`` until it succeeds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, Self, TypeAlias, final

import msgspec

from deltaloop._internal.tracebacks import defined_at
from deltaloop.api.errors import InvalidKeyError
from deltaloop.api.json_values import type_of
from deltaloop.api.keys import join_key, meta_namespace_key, split_meta_namespace_key
from deltaloop.api.references import ObjectReference, Trigger, reference_to
from deltaloop.api.resource import OwnerReference, Resource
from deltaloop.api.resource_type import ResourceType, TypedKind, resource_type_of
from deltaloop.runtime.core.changes import Change
from deltaloop.workqueue.errors import TerminalError

_UNMAPPED: Final = 8


@final
class Request(msgspec.Struct, frozen=True):
    """The object to reconcile, without its state and its changes.

    Attributes:
        namespace: Namespace of the object; empty for cluster-scoped kinds.
        name: Name of the object.
    """

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """Return ``namespace/name`` or the name, which is the item in the work queue."""
        return join_key(self.namespace, self.name)

    @classmethod
    def from_key(cls, key: str) -> Self:
        """Parse a key.

        Raises:
            InvalidKeyError: If the key is invalid or has no name.
        """
        found = split_meta_namespace_key(key)
        if not found.name:
            raise InvalidKeyError(key)
        return cls(found.namespace, found.name)

    def __str__(self) -> str:
        return self.key


class ObjectOfClass(Protocol):
    """Object of a class that is decorated with ``custom_resource``."""

    @property
    def metadata(self) -> Any: ...


Mapped: TypeAlias = Iterable[str | Request | Resource | ObjectOfClass]
"""Objects to reconcile, as requests, keys or objects."""

Mapper: TypeAlias = Callable[[Resource], Mapped]
"""Function from an object to the objects to reconcile for it."""


@final
class InvalidRequestsError(TerminalError, TypeError):
    """A function returned a value that is not a list of keys, requests or objects to reconcile.

    The change is not retried, because the result would be the same.

    Attributes:
        returned: Class name of the value.
        where: Location of the function, for example ``greeter.py:12 in map``; empty if unknown.
    """

    where: str = ""

    def __init__(self, returned: str) -> None:
        super().__init__(f"a mapping must return a list of keys, requests or objects, got {returned}.")
        self.returned = returned


def own_key(obj: Resource) -> Mapped:
    return (meta_namespace_key(obj),)


def owner_key(owner: TypedKind[Any], *, controller_only: bool = True) -> Mapper:
    """Return a mapper from an object to the keys of its owners of one group and kind, in any version.

    Source: controller-runtime pkg/handler/enqueue_owner.go.
    """
    kind = ResourceType.of(owner) if isinstance(owner, type) else owner
    version, group, name, namespaced = kind.api_version, kind.group, kind.kind, kind.namespaced
    last: tuple[tuple[OwnerReference, ...], str, tuple[str, ...]] = ((), "", ())  # most changes keep the owners

    def map_owner(obj: Resource) -> Mapped:
        nonlocal last
        owners = obj.owner_references
        if owners == last[0] and obj.namespace == last[1]:
            return last[2]
        keys: tuple[str, ...] = ()
        for reference in owners:
            if reference.kind != name or (controller_only and not reference.controller):
                continue
            if reference.api_version == version or reference.api_version.rpartition("/")[0] == group:
                in_namespace = namespaced and obj.namespace
                keys += (f"{obj.namespace}/{reference.name}" if in_namespace else reference.name,)
        last = owners, obj.namespace, keys
        return keys

    return map_owner


def keys_by_index(obj: Resource, lookup: Callable[[str], Iterable[Resource]]) -> list[str]:
    """Return the keys of the objects whose index contains an object's key, or its name in the same namespace."""
    keys = [found.key for found in lookup(obj.key)]
    if obj.namespace:
        keys += [found.key for found in lookup(obj.name) if found.namespace in ("", obj.namespace)]
    return keys


def requests_for(
    mapper: Mapper, source: str, verb: str, old: Resource | None, new: Resource | None, now: float
) -> tuple[Iterable[str], Trigger]:
    """Return the distinct keys that a change affects, and their common trigger.

    ``old`` is None for new objects, and ``new`` for deleted objects. ``now`` is in monotonic seconds. Raises
    InvalidRequestsError if the mapper returns an invalid value.
    """
    subject = old if new is None else new
    assert subject is not None
    before, after = "" if old is None else old.resource_version, "" if new is None else new.resource_version
    if verb == "update" and before == after:
        verb = "resync"
    kind = subject.resource_type
    if kind is None:
        reference = reference_to(subject)
    else:
        reference = ObjectReference(
            kind.api_version, kind.kind, subject.namespace, subject.name, subject.uid, after or before
        )
    trigger = Trigger(source, verb, reference, before, after, now)
    if mapper is own_key and subject.name and (old is None or old.key == subject.key):
        return (subject.key,), trigger
    try:
        keys = keys_of(mapper(subject))
        if old is not None and old is not subject and (earlier := mapper(old)) is not keys:
            keys = (*keys_of(earlier), *keys)
    except InvalidRequestsError as error:
        error.where = defined_at(mapper)
        raise
    return keys if len(keys) < 2 else dict.fromkeys(keys), trigger


def keys_of(mapped: Any) -> tuple[str, ...]:
    """Return the keys in a mapper's result, or raise InvalidRequestsError."""
    keys: tuple[str, ...] = mapped
    if type_of(mapped) is tuple and mapped and not mapped[1:] and type_of(mapped[0]) is str:  # usual
        return keys
    values: Iterable[Any] = mapped
    if type(mapped) not in (list, tuple) and (
        isinstance(mapped, str | Request | Resource) or not isinstance(mapped, Iterable)
    ):
        raise InvalidRequestsError(type(mapped).__name__)  # iterating over a string would return its letters
    keys = ()
    for each in values:
        if type(each) is str or isinstance(each, str):
            keys += (each,)
        elif isinstance(each, Request | Resource):
            keys += (each.key,)
        elif resource_type_of(type_of(each)) is not None:
            keys += (meta_namespace_key(each),)
        else:
            raise InvalidRequestsError(f"{type_of(values).__name__} with a {type(each).__name__} in it")
    return keys


@final
class Unmapped:
    """Changes whose mapper failed, by object and in order."""

    def __init__(self, bound: int = _UNMAPPED) -> None:
        """Create an empty collection; beyond ``bound`` changes per object, the two oldest are merged."""
        self._bound = bound
        self.changes: dict[str, deque[Change]] = {}

    def add(self, key: str, change: Change) -> None:
        changes = self.changes.setdefault(key, deque())
        changes.append(change)
        if len(changes) > self._bound:
            first, second = changes.popleft(), changes.popleft()
            old = second.old if first.old is None else first.old
            changes.appendleft(Change(verb=second.verb, old=old, new=second.new))

    def first(self, key: str) -> Change | None:
        changes = self.changes.get(key)
        return changes[0] if changes else None

    def mapped(self, key: str) -> None:
        """Remove the oldest change of an object, which has been mapped."""
        changes = self.changes[key]
        changes.popleft()
        if not changes:
            del self.changes[key]
