"""Garbage collection by owner references: what goes when its owners are gone, and how a cascading delete ends.

An owner is *absent* if no object has its uid, or only one in another namespace; *waiting* if it is being deleted in the
foreground; otherwise *solid*. For each object with owners:

    some solid                  references to absent and waiting owners are taken away
    none solid                  it is deleted (in the foreground if an owner waits for it and it has dependents itself)

and for each object that is being deleted with a finalizer of ours:

    foregroundDeletion          goes once no dependent that blocks it (blockOwnerDeletion) is left
    orphan                      dependents lose their reference, then the finalizer goes

An owner of a kind that is not served counts as solid, unless its end has been seen: nothing is deleted on a guess.

The graph follows the store's changes; if it has fallen behind the window it is built anew from the whole store.

Source: Kubernetes pkg/controller/garbagecollector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from deltaloop.api.resource import OwnerReference, Resource
from deltaloop.api.status import ApiError, NotFoundError
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamps
from deltaloop.apiserver.core.storage.encoding import decode_object, stored_version
from deltaloop.apiserver.core.storage.history import StoredChange
from deltaloop.apiserver.core.storage.store_errors import CompactedError
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.deletion import FOREGROUND, ORPHAN
from deltaloop.apiserver.core.writes.operations import Operations
from deltaloop.schemas.json_values import at, items, mapping
from deltaloop.schemas.work import Account, WorkLimitError, limited

_STEPS_OF_A_WRITE: Final = 200_000
_STEPS_OF_A_RUN: Final = 50_000


class StoreKey(NamedTuple):
    """Where an object is in the store."""

    resource: str
    key: str


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run did: whether it wrote, what it was not allowed to change and why, and whether more is left to do."""

    wrote: bool
    refused: tuple[tuple[StoreKey, str], ...] = ()
    more: bool = False


@final
class GarbageCollector:
    """The graph of owners and dependents, and what is left to look at."""

    def __init__(self, operations: Operations) -> None:
        """Begin with everything that is in the store."""
        self._operations = operations
        self._store = operations.store
        self._places: dict[str, StoreKey] = {}
        self._dependents: defaultdict[str, set[StoreKey]] = defaultdict(set)
        self._ended: set[str] = set()
        self._pending: dict[StoreKey, None] = {}
        self._cursor = 0
        self._steps = 0
        self._rebuild()

    def run(self, *, stamps: Stamps, most: int | None = None) -> Collected:
        """Work until nothing is left to do now, or until ``most`` objects have been looked at or much was computed."""
        before = self._store.revision
        refused: list[tuple[StoreKey, str]] = []
        self._follow()
        looked_at = self._steps = 0
        while self._pending and looked_at != most and (most is None or self._steps < _STEPS_OF_A_RUN):
            looked_at += 1
            place = next(iter(self._pending))
            del self._pending[place]
            try:
                self._examine(place, stamps=stamps)
            except NotFoundError:
                pass  # a delete earlier in this run took it along
            except ApiError as error:
                refused.append((place, error.status.reason))
            except WorkLimitError:  # of rules or policies
                refused.append((place, "Timeout"))
            self._follow()
        return Collected(self._store.revision != before, tuple(refused), more=bool(self._pending))

    def _rebuild(self) -> None:
        self._places.clear()
        self._dependents.clear()
        self._ended.clear()
        self._cursor = self._store.revision
        for resource in self._store.resources():
            for obj in self._store.list(resource).items:
                self._add(StoreKey(resource, obj.key), obj)

    def _follow(self) -> None:
        try:
            while changes := self._store.changes_after(self._cursor):
                for change in changes:
                    self._apply(change)
                self._cursor = changes[-1].revision
        except CompactedError:
            self._rebuild()

    def _apply(self, change: StoredChange) -> None:
        place = StoreKey(change.resource, change.key)
        if change.old is not None:
            for owner in change.old.owner_references:
                self._dependents[owner.uid].discard(place)
                if not self._dependents[owner.uid]:
                    del self._dependents[owner.uid]
                    self._ended.discard(owner.uid)
                if owner.uid in self._places:
                    self._pending[self._places[owner.uid]] = None
        if change.new is not None:
            self._add(place, change.new)
        elif change.old is not None:
            self._places.pop(change.old.uid, None)
            if change.old.uid in self._dependents:
                self._ended.add(change.old.uid)
                self._look_at(self._dependents[change.old.uid])

    def _add(self, place: StoreKey, obj: Resource) -> None:
        self._places[obj.uid] = place
        owners = obj.owner_references
        for owner in owners:
            self._dependents[owner.uid].add(place)
        if owners or obj.deletion_timestamp is not None:
            self._pending[place] = None
        if obj.deletion_timestamp is not None:
            self._look_at(self._dependents.get(obj.uid, ()))

    def _look_at(self, places: Iterable[StoreKey]) -> None:
        self._pending.update(dict.fromkeys(sorted(places)))

    def _examine(self, place: StoreKey, *, stamps: Stamps) -> None:
        obj = self._store.get(*place)
        served = self._served(place.resource, obj)
        if obj is None or served is None:
            return
        if obj.deletion_timestamp is not None:
            self._finish(served, place, obj, stamps=stamps)
            return
        owners = obj.owner_references
        solid = [owner for owner in owners if self._is_solid(owner, obj)]
        if not owners or len(solid) == len(owners):
            return
        if solid:
            self._keep_owners(served, obj, {owner.uid for owner in solid}, stamps=stamps)
            return
        waiting = any(self._is_waiting(owner, obj) for owner in owners)
        policy = "Foreground" if waiting and self._dependents.get(obj.uid) else "Background"
        if {FOREGROUND, ORPHAN} & set(obj.finalizers):
            options = DeleteOptions()
        else:
            options = DeleteOptions(propagation_policy=policy)
        with self._one_write():
            self._operations.delete(served, obj.namespace, obj.name, options, stamp=stamps())

    def _finish(self, served: ServedResource, place: StoreKey, obj: Resource, *, stamps: Stamps) -> None:
        finalizers = obj.finalizers
        dependents = sorted(self._dependents.get(obj.uid, ()))
        if ORPHAN in finalizers:
            for dependent in dependents:
                found = self._store.get(*dependent)
                kind = self._served(dependent.resource, found)
                if found is not None and kind is not None:
                    others = {owner.uid for owner in found.owner_references} - {obj.uid}
                    self._keep_owners(kind, found, others, stamps=stamps)
            self._drop_finalizer(served, place, ORPHAN, stamps=stamps)
        elif FOREGROUND in finalizers and not any(self._blocks(dependent, obj.uid) for dependent in dependents):
            self._drop_finalizer(served, place, FOREGROUND, stamps=stamps)

    def _blocks(self, dependent: StoreKey, uid: str) -> bool:
        found = self._store.get(*dependent)
        if found is None:
            return False
        return any(owner.uid == uid and owner.block_owner_deletion for owner in found.owner_references)

    def _drop_finalizer(self, served: ServedResource, place: StoreKey, finalizer: str, *, stamps: Stamps) -> None:
        current = self._store.get(*place)
        if current is None:
            return
        fields = decode_object(served, current)
        mapping(fields["metadata"])["finalizers"] = [name for name in current.finalizers if name != finalizer]
        with self._one_write():
            self._operations.update(served, current.namespace, current.name, fields, stamp=stamps())

    def _keep_owners(self, served: ServedResource, obj: Resource, uids: set[str], *, stamps: Stamps) -> None:
        fields = decode_object(served, obj)
        metadata = mapping(fields["metadata"])
        metadata["ownerReferences"] = [
            owner for owner in items(metadata.get("ownerReferences")) if at(owner, "uid") in uids
        ]
        with self._one_write():
            self._operations.update(served, obj.namespace, obj.name, fields, stamp=stamps())

    @contextmanager
    def _one_write(self) -> Generator[None]:
        """Limit the work of a write, which runs on the loop."""
        work = Account(_STEPS_OF_A_WRITE)
        try:
            with limited(work):
                yield
        finally:
            self._steps += _STEPS_OF_A_WRITE - work.steps

    def _is_solid(self, owner: OwnerReference, dependent: Resource) -> bool:
        found = self._owner(owner, dependent)
        if found is None:
            return owner.uid not in self._ended and not self._is_served(owner)
        return not _waits(found)

    def _is_waiting(self, owner: OwnerReference, dependent: Resource) -> bool:
        found = self._owner(owner, dependent)
        return found is not None and _waits(found)

    def _owner(self, owner: OwnerReference, dependent: Resource) -> Resource | None:
        place = self._places.get(owner.uid)
        found = self._store.get(*place) if place is not None else None
        if found is None or found.uid != owner.uid or found.namespace not in ("", dependent.namespace):
            return None
        return found

    def _is_served(self, owner: OwnerReference) -> bool:
        group, _, version = owner.api_version.rpartition("/")
        return self._operations.registry.find_kind(group, version, owner.kind) is not None

    def _served(self, resource: str, obj: Resource | None = None) -> ServedResource | None:
        """Return a version of a resource: the one in which an object is stored, if it is served."""
        versions = self._operations.registry.sharing(resource)
        own = stored_version(obj) if obj is not None else ""
        return next((item for item in versions if item.type.api_version == own), versions[0] if versions else None)


def _waits(owner: Resource) -> bool:
    return owner.deletion_timestamp is not None and FOREGROUND in owner.finalizers
