"""Controllers that delete dependents of deleted objects, and the content of deleted namespaces.

An owner is *absent* if no object with its UID is found, *waiting* if it is being deleted in the foreground, *unknown*
if its API version is not served or it is namespaced and its dependent is not, and *solid* otherwise. For objects with
owners:

    some solid                  remove the references to absent and waiting owners
    none solid                  delete it (in the foreground if an owner waits for it and it has dependents)
    some unknown                keep it

For each object that is being deleted with one of these finalizers:

    foregroundDeletion          remove the finalizer when no blocking dependent (blockOwnerDeletion) is left
    orphan                      remove the references of the dependents, then the finalizer

An owner is also absent if the collector has seen its deletion in an API version that is no longer served. Events are
never collected. The graph follows the changes of the store, and is rebuilt if it falls behind the retained changes.

Source: Kubernetes pkg/controller/garbagecollector; Kubernetes pkg/controller/namespace/deletion; Kubernetes
pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from typing import Final, NamedTuple, final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, texts
from deltaloop.api.resource import OwnerReference, Resource
from deltaloop.api.status import ApiError, NotFoundError
from deltaloop.apiserver.core.kinds.cluster import NAMESPACE_FINALIZER
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.storage.history import StoredChange
from deltaloop.apiserver.core.storage.store import CompactedError
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.delete import FOREGROUND, ORPHAN, delete
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.core.writes.update import update
from deltaloop.schemas.work import Account, WorkLimitError, limited

_STEPS_OF_A_WRITE: Final = 200_000
_STEPS_OF_A_RUN: Final = 50_000

_CRDS: Final = kinds.CUSTOM_RESOURCE_DEFINITION.group_resource
_EVENTS: Final = kinds.EVENT.group_resource
_OWNED: Final = b'"ownerReferences"'


class _Owner(Enum):
    SOLID = auto()
    WAITING = auto()
    ABSENT = auto()
    UNKNOWN = auto()


class _Ended(NamedTuple):
    """API versions of a deleted owner. Empty if its CRD was deleted at the same time."""

    group: str
    namespace: str
    versions: frozenset[str]

    def is_named_by(self, owner: OwnerReference, namespace: str) -> bool:
        group = owner.api_version.rpartition("/")[0]
        served = owner.api_version in self.versions if self.versions else group == self.group
        return served and self.namespace in ("", namespace)


# Maximum number of dependents that lose their owner in one step.
_ORPHANS: Final = 16
# Bytes of an object that count as one small object.
_SMALL: Final = 1000
# Owners that are read in the time in which a small object is examined.
_OWNERS: Final = 32


class StoreKey(NamedTuple):
    resource: str
    key: str


@dataclass(frozen=True, slots=True)
class Collected:
    """Result of a run: whether it wrote, the rejected changes with reasons, and whether work is left."""

    wrote: bool
    refused: tuple[tuple[StoreKey, str], ...] = ()
    more: bool = False


@final
class GarbageCollector:
    def __init__(self, state: ServerState, moments: Moments) -> None:
        self._server = state
        self._moments = moments
        self._store = state.store
        self._places: dict[str, StoreKey] = {}
        # Ordered by arrival. The second one has the dependents that block the deletion of their owner.
        self._dependents: defaultdict[str, dict[StoreKey, None]] = defaultdict(dict)
        self._blocking: defaultdict[str, dict[StoreKey, None]] = defaultdict(dict)
        self._waiting: set[StoreKey] = set()
        self._ended: dict[str, _Ended] = {}
        self._unknown: dict[StoreKey, None] = {}
        self._pending: dict[StoreKey, None] = {}
        self._unread: Iterator[tuple[StoreKey, Resource]] = iter(())
        self._cursor = 0
        self._steps = 0
        self._rebuild()

    def run(self, *, most: int | None = None) -> Collected:
        """Work until the queue is empty, or for about ``most`` small objects or a fixed amount of computation."""
        before = self._store.revision
        refused: list[tuple[StoreKey, str]] = []
        followed = self._follow(most)
        looked_at = self._steps = 0
        while followed and self._pending and (most is None or (looked_at < most and self._steps < _STEPS_OF_A_RUN)):
            place = next(iter(self._pending))
            del self._pending[place]
            looked_at += self._weight(place)
            try:
                self._examine(place)
            except NotFoundError:
                pass  # an earlier delete in this run removed it
            except ApiError as error:
                refused.append((place, error.status.reason))
            except WorkLimitError:  # from rules or policies
                refused.append((place, "Timeout"))
            followed = self._follow(most)
        return Collected(self._store.revision != before, tuple(refused), more=bool(self._pending) or not followed)

    def _weight(self, place: StoreKey) -> int:
        obj = self._store.get(*place)
        if obj is None:
            return 1
        orphans = min(len(self._dependents.get(obj.uid, ())), _ORPHANS) if ORPHAN in obj.finalizers else 0
        return 1 + orphans + len(obj.raw) // _SMALL

    def _rebuild(self) -> None:
        for graph in (self._places, self._dependents, self._blocking, self._waiting, self._ended, self._unknown):
            graph.clear()
        self._cursor = self._store.revision
        lists = [(resource, self._store.list(resource).items) for resource in self._store.resources()]
        self._unread = ((StoreKey(resource, obj.key), obj) for resource, found in lists for obj in found)

    def _follow(self, most: int | None) -> bool:
        """Update the graph for about ``most`` objects with some owners, and return whether it is complete."""
        room = most * _OWNERS if most is not None else None
        read = 0
        while room is None or read < room:
            if (unread := next(self._unread, None)) is not None:
                read += self._add(*unread)
                continue
            try:
                changes = self._store.changes_after(self._cursor)
            except CompactedError:
                self._rebuild()
                continue
            if not changes:
                return True
            for change in changes:
                read += self._apply(change)
                self._cursor = change.revision
                if room is not None and read >= room:
                    break
        return False

    def _apply(self, change: StoredChange) -> int:
        """Update the graph, and return the number of objects and owners."""
        place = StoreKey(change.resource, change.key)
        if change.resource == _CRDS:
            self._pending.update(self._unknown)
            self._unknown.clear()
        if change.resource == _EVENTS:
            return 1
        read = 1
        if change.old is not None:
            owners = change.old.owner_references if _OWNED in change.old.raw else ()
            read += len(owners)
            for owner in owners:
                self._dependents[owner.uid].pop(place, None)
                self._blocking[owner.uid].pop(place, None)
                if not self._blocking[owner.uid]:
                    del self._blocking[owner.uid]
                if not self._dependents[owner.uid]:
                    del self._dependents[owner.uid]
                    self._ended.pop(owner.uid, None)
                if owner.uid in self._places:
                    self._pending[self._places[owner.uid]] = None
        if change.new is not None:
            read += self._add(place, change.new)
        elif change.old is not None:
            self._places.pop(change.old.uid, None)
            self._waiting.discard(place)
            if change.old.uid in self._dependents:
                versions = self._server.registry.sharing(change.resource)
                group = change.resource.partition(".")[2]
                served = frozenset(version.type.api_version for version in versions)
                self._ended[change.old.uid] = _Ended(group, change.old.namespace, served)
                self._pending.update(self._dependents[change.old.uid])
        return read

    def _add(self, place: StoreKey, obj: Resource) -> int:
        if place.resource == _EVENTS:
            return 1
        self._places[obj.uid] = place
        owners = obj.owner_references if _OWNED in obj.raw else ()
        for owner in owners:
            self._dependents[owner.uid][place] = None
            if owner.block_owner_deletion:
                self._blocking[owner.uid][place] = None
        if owners or obj.deletion_timestamp is not None:
            self._pending[place] = None
        if obj.deletion_timestamp is not None:
            self._pending.update(self._dependents.get(obj.uid, {}))
            if FOREGROUND in obj.finalizers:
                self._waiting.add(place)
            else:
                self._waiting.discard(place)
        return 1 + len(owners)

    def _examine(self, place: StoreKey) -> None:
        obj = self._store.get(*place)
        served = self._server.version_of(place.resource, obj)
        if obj is None or served is None:
            return
        if obj.deletion_timestamp is not None:
            self._finish(served, place, obj)
            return
        owners = obj.owner_references
        states = [self._state(owner, obj) for owner in owners]
        if _Owner.UNKNOWN in states:
            self._unknown[place] = None
        elif _Owner.SOLID in states:
            left = {owner.uid for owner, state in zip(owners, states, strict=True) if state is not _Owner.SOLID}
            if left:
                self._drop_owners(served, obj, left)
        elif owners:
            waits = _Owner.WAITING in states
            options = self._policy(served, obj, waits)
            with self._one_write():
                delete(self._server.own_write(served, obj.namespace, obj.name, self._moments()), options)

    def _policy(self, served: ServedResource, obj: Resource, waits: bool) -> DeleteOptions:
        """Return the delete options; the object's finalizers decide unless an owner waits for it."""
        dependents = self._dependents.get(obj.uid)
        if waits and dependents:
            if not self._waiting.isdisjoint(dependents):
                self._unblock_owners(served, obj)  # it may own one of its owners
            return DeleteOptions(propagation_policy="Foreground")
        if {FOREGROUND, ORPHAN} & set(obj.finalizers):
            return DeleteOptions()
        return DeleteOptions(propagation_policy="Background")

    def _finish(self, served: ServedResource, place: StoreKey, obj: Resource) -> None:
        finalizers = obj.finalizers
        dependents = self._dependents.get(obj.uid, {})
        if ORPHAN in finalizers:
            # Each change queues the owner again for the remaining dependents.
            found = ((self._store.get(*dependent), dependent.resource) for dependent in dependents)
            served_ones = (
                (each, kind) for each, name in found if each and (kind := self._server.version_of(name, each))
            )
            left = [*islice(served_ones, _ORPHANS + 1)]
            for each, kind in left[:_ORPHANS]:
                self._drop_owners(kind, each, {obj.uid})
            if len(left) <= _ORPHANS:
                self._drop_finalizer(served, place, ORPHAN)
        elif FOREGROUND in finalizers and obj.uid not in self._blocking:
            self._drop_finalizer(served, place, FOREGROUND)

    def _drop_finalizer(self, served: ServedResource, place: StoreKey, finalizer: str) -> None:
        current = self._store.get(*place)
        if current is None:
            return
        fields = decode_object(served, current)
        mapping(fields["metadata"])["finalizers"] = [name for name in current.finalizers if name != finalizer]
        self._update(served, current, fields)

    def _drop_owners(self, served: ServedResource, obj: Resource, uids: set[str]) -> None:
        fields = decode_object(served, obj)
        metadata = mapping(fields["metadata"])
        metadata["ownerReferences"] = [
            owner for owner in items(metadata.get("ownerReferences")) if at(owner, "uid") not in uids
        ]
        self._update(served, obj, fields)

    def _update(self, served: ServedResource, obj: Resource, fields: dict[str, object]) -> None:
        with self._one_write():
            update(self._server.own_write(served, obj.namespace, obj.name, self._moments()), fields)

    @contextmanager
    def _one_write(self) -> Generator[None]:
        """Limit the work of a write, because it runs on the event loop."""
        work = Account(_STEPS_OF_A_WRITE)
        try:
            with limited(work):
                yield
        finally:
            self._steps += _STEPS_OF_A_WRITE - work.steps

    def _unblock_owners(self, served: ServedResource, obj: Resource) -> None:
        fields = decode_object(served, obj)
        for owner in map(mapping, items(at(fields, "metadata", "ownerReferences"))):
            if owner.get("blockOwnerDeletion") is True:
                owner["blockOwnerDeletion"] = False
        self._update(served, obj, fields)

    def _state(self, owner: OwnerReference, dependent: Resource) -> _Owner:
        group, _, version = owner.api_version.rpartition("/")
        kind = self._server.registry.find_kind(group, version, owner.kind)
        if kind is None:
            ended = self._ended.get(owner.uid)
            named = ended is not None and ended.is_named_by(owner, dependent.namespace)
            return _Owner.ABSENT if named else _Owner.UNKNOWN
        if kind.type.namespaced and not dependent.namespace:
            return _Owner.UNKNOWN
        found = self._store.get(kind.storage, kind.key(dependent.namespace, owner.name))
        if found is None or found.uid != owner.uid:
            return _Owner.UNKNOWN if owner.uid in self._store.outside else _Owner.ABSENT
        return _Owner.WAITING if _waits(found) else _Owner.SOLID


def _waits(owner: Resource) -> bool:
    return owner.deletion_timestamp is not None and FOREGROUND in owner.finalizers


MOST: Final = 32
_BACKGROUND: Final = DeleteOptions(propagation_policy="Background")
_NAMESPACES: Final = kinds.NAMESPACE.group_resource


def clean_up(state: ServerState, *, moments: Moments, most: int = MOST) -> bool:
    """Continue the deletion of terminating namespaces, at most about ``most`` small objects.

    Call again while it returns True.
    """
    before = state.store.revision
    for namespace in state.store.being_deleted(_NAMESPACES):
        most = _empty(state, namespace.name, moments=moments, most=most)
        if most <= 0:
            break
    return state.store.revision != before


def _empty(state: ServerState, namespace: str, *, moments: Moments, most: int) -> int:
    """Delete objects of a namespace, and return how many more may be deleted."""
    store = state.store
    left = 0
    # The versions of a resource share their objects, so one version is enough.
    resources = {item.type.group_resource: item for item in state.registry.resources() if item.type.namespaced}
    for resource, served in sorted(resources.items()):
        if most <= 0:
            return most
        for item in store.list(resource, prefix=f"{namespace}/", matches=_stays, limit=most).items:
            if most <= 0:
                return most
            delete(state.own_write(served, namespace, item.name, moments()), _BACKGROUND)
            most -= 1 + len(item.raw) // _SMALL
        left += len(store.list(resource, prefix=f"{namespace}/", limit=1).items)
    if left:
        return most
    itself = state.registry.resource(kinds.NAMESPACE)
    current = store.get(_NAMESPACES, namespace)
    if itself is None or current is None:
        return most
    fields = decode_object(itself, current)
    finalizers = [name for name in texts(at(fields, "spec", "finalizers")) if name != NAMESPACE_FINALIZER]
    if len(finalizers) == len(texts(at(fields, "spec", "finalizers"))):
        return most
    fields["spec"] = {**mapping(fields["spec"]), "finalizers": finalizers}
    update(state.own_write(itself, "", namespace, moments(), subresource="finalize"), fields)
    return most


def _stays(obj: Resource) -> bool:
    return obj.deletion_timestamp is None


def release(state: ServerState, *, moments: Moments) -> bool:
    """Remove the protection finalizers of unused objects, and return whether an object was written."""
    before = state.store.revision
    for served in state.registry.resources():
        protection = served.strategy.protection
        if protection is None:
            continue
        for item in state.store.being_deleted(served.storage):
            if protection.finalizer in item.finalizers and not protection.in_use(item, state.store):
                fields = decode_object(served, item)
                left = [name for name in item.finalizers if name != protection.finalizer]
                mapping(fields["metadata"])["finalizers"] = left
                update(state.own_write(served, item.namespace, item.name, moments()), fields)
    return state.store.revision != before
