"""Which keys a change asks to reconcile, and why: one pure function for each kind of handler.

A mapper takes an object and returns keys. On an update it is asked about the old and the new object, because an object
that changed its owner concerns both owners. A change whose mapper raises waits (``Unmapped``) until it does not.

A mapper that looks into caches may come too early: the object that it should find is not cached yet. Then the event of
that object, which comes later, asks for the same reconcile, if its kind is watched as well.
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
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType, TypedKind, resource_type_of
from deltaloop.runtime.core.predicates import Change
from deltaloop.workqueue.errors import TerminalError

_UNMAPPED: Final = 8


@final
class Request(msgspec.Struct, frozen=True):
    """Which object to reconcile; not what happened to it, and not its state.

    Attributes:
        namespace: Its namespace; empty for kinds without.
        name: The object's name.
    """

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone: the item in the work queue."""
        return join_key(self.namespace, self.name)

    @classmethod
    def from_key(cls, key: str) -> Self:
        """Read a key.

        Raises:
            InvalidKeyError: If it is none, or names nothing.
        """
        found = split_meta_namespace_key(key)
        if not found.name:
            raise InvalidKeyError(key)
        return cls(found.namespace, found.name)

    def __str__(self) -> str:
        return self.key


class ObjectOfClass(Protocol):
    """An object of a class of ``custom_resource``."""

    @property
    def metadata(self) -> Any:
        """Its metadata, with its name."""
        ...


Mapped: TypeAlias = Iterable[str | Request | Resource | ObjectOfClass]
"""What is to be reconciled: requests, keys, or the objects themselves, be they of a class or not."""

Mapper: TypeAlias = Callable[[Resource], Mapped]
"""From an object to what is to be reconciled for it."""


@final
class InvalidRequestsError(TerminalError, TypeError):
    """A function said what to reconcile by something else than a list of keys, requests or objects; the fault is its.

    A change whose mapping does so is given up: asked again, it would return the same.

    Attributes:
        returned: Name of the class of what came back.
        where: Where the function is defined, such as ``greeter.py:12 in map``; empty if that is unknown.
    """

    where: str = ""

    def __init__(self, returned: str) -> None:
        """Keep what came back."""
        super().__init__(
            f"a {returned} does not say what to reconcile; return a list of keys, requests or objects, or []"
        )
        self.returned = returned


def own_key(obj: Resource) -> Mapped:
    """Map an object to its own key."""
    return (meta_namespace_key(obj),)


def owner_key(owner: TypedKind[Any], *, controller_only: bool = True) -> Mapper:
    """Make a mapper from an object to the keys of its owners of one type.

    Owners are compared by group and kind; the version may differ, as upstream does it. An owner lives in the object's
    namespace, or in none if its type has none.

    Args:
        owner: The type of the owners, or their class.
        controller_only: Whether only the controlling owner counts.

    Source: controller-runtime pkg/handler/enqueue_owner.go.
    """
    kind = ResourceType.of(owner) if isinstance(owner, type) else owner
    version, group, name, namespaced = kind.api_version, kind.group, kind.kind, kind.namespaced

    def map_owner(obj: Resource) -> Mapped:
        keys: tuple[str, ...] = ()
        for reference in obj.owner_references:
            if reference.kind != name or (controller_only and not reference.controller):
                continue
            if reference.api_version == version or reference.api_version.rpartition("/")[0] == group:
                in_namespace = namespaced and obj.namespace
                keys += (f"{obj.namespace}/{reference.name}" if in_namespace else reference.name,)
        return keys

    return map_owner


def keys_by_index(obj: Resource, lookup: Callable[[str], Iterable[Resource]]) -> list[str]:
    """Return the keys of the objects whose index holds an object's name.

    The index holds ``namespace/name``, or the bare name: then both are in one namespace, if both kinds have namespaces.

    Args:
        obj: What is referred to.
        lookup: From an index value to the objects that are filed under it.
    """
    keys = [found.key for found in lookup(obj.key)]
    if obj.namespace:
        keys += [found.key for found in lookup(obj.name) if found.namespace in ("", obj.namespace)]
    return keys


def requests_for(
    mapper: Mapper, source: str, verb: str, old: Resource | None, new: Resource | None, now: float
) -> tuple[Iterable[str], Trigger]:
    """Return the keys that a change concerns, each once, and the trigger that all of them get.

    Args:
        mapper: From an object to keys.
        source: Where the change was seen, of low cardinality.
        verb: ``add``, ``update`` or ``delete``.
        old: The object before; None if it is new.
        new: The object after; None if it is gone. One of the two must be there.
        now: Monotonic seconds.

    Raises:
        InvalidRequestsError: If the mapper returns something else.
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
    keys: dict[str, None] = {}
    try:
        for obj in (old, new):
            for key in () if obj is None else keys_of(mapper(obj)):
                keys[key] = None
    except InvalidRequestsError as error:
        error.where = defined_at(mapper)
        raise
    return keys, trigger


def keys_of(mapped: Any) -> Iterable[str]:
    """Return the keys of what a mapper returned.

    Raises:
        InvalidRequestsError: If it is nothing of the kind.
    """
    values: Iterable[Any] = mapped
    if type(mapped) not in (list, tuple) and (
        isinstance(mapped, str | Request | Resource) or not isinstance(mapped, Iterable)
    ):
        raise InvalidRequestsError(type(mapped).__name__)  # the letters of a text are no keys
    keys: list[str] = []
    for each in values:
        if type(each) is str or isinstance(each, str):
            keys.append(each)
        elif isinstance(each, Request | Resource):
            keys.append(each.key)
        elif resource_type_of(type_of(each)) is not None:
            keys.append(meta_namespace_key(each))
        else:
            raise InvalidRequestsError(f"{type_of(values).__name__} with a {type(each).__name__} in it")
    return keys


@final
class Unmapped:
    """Changes whose mapper failed, by object and in order: they wait until it gives their keys.

    Attributes:
        changes: Those that wait, by key.
    """

    def __init__(self, bound: int = _UNMAPPED) -> None:
        """Begin with none.

        Args:
            bound: Most changes of one object. Beyond that the oldest two become one, of the states at its ends.
        """
        self._bound = bound
        self.changes: dict[str, deque[Change]] = {}

    def add(self, key: str, change: Change) -> None:
        """Keep a change of an object."""
        changes = self.changes.setdefault(key, deque())
        changes.append(change)
        if len(changes) > self._bound:
            first, second = changes.popleft(), changes.popleft()
            old = second.old if first.old is None else first.old
            changes.appendleft(Change(verb=second.verb, old=old, new=second.new))

    def first(self, key: str) -> Change | None:
        """Return the oldest change of an object; None if none waits."""
        changes = self.changes.get(key)
        return changes[0] if changes else None

    def mapped(self, key: str) -> None:
        """The oldest change of an object has its keys."""
        changes = self.changes[key]
        changes.popleft()
        if not changes:
            del self.changes[key]
