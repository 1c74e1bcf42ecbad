"""The state that writes read and change: the stored objects, the served resources, and the admission plugins.

Verbs work on the state of the server, or on a draft of it that one write computes in a thread. A write that has effects
on other objects makes further writes of the server itself here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

from deltaloop.api.json_values import mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.plugins import chain_of
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.draft import Ask, Commit, Draft
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.storage.store import Objects, RevisionStore
from deltaloop.apiserver.core.strategy import Given
from deltaloop.apiserver.core.write_context import OWN_MANAGER, Admission, Moment, WriteContext
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.crd_lifecycle import CrdLifecycle
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import DeleteResult, delete
from deltaloop.apiserver.core.writes.storing import remove
from deltaloop.apiserver.core.writes.update import update
from deltaloop.schemas.work import unbounded_growth


@final
class ServerState:
    """Store, registry and admission of one server, or of the draft of one write.

    Attributes:
        store: Store of the server.
        objects: Objects that writes read and change: the store, or the draft.
        registry: Served resources.
        admission: Admission plugins.
        crds: Custom resource definitions.
    """

    def __init__(self, store: RevisionStore, registry: Registry, admission: Admission | None = None) -> None:
        """Use a store, a registry and admission plugins; the default plugins if None."""
        self.store = store
        self.objects: Objects = store
        self.registry = registry
        self.admission: Admission = admission if admission is not None else chain_of()
        self.crds: CrdLifecycle = CrdLifecycle(store, registry)
        self._draft: Draft | None = None

    def draft(self, ask: Ask) -> ServerState:
        """Return a draft for one write that is computed in a thread; ``commit`` carries it out.

        Args:
            ask: Runs a function on the event loop; the thread waits for its result.
        """
        drafted = ServerState(self.store, self.registry.branch(), self.admission)
        drafted.objects = drafted._draft = draft = Draft(self.store, ask=ask)
        drafted.crds = CrdLifecycle(draft, drafted.registry, drafted=True)
        return drafted

    def is_current(self, drafted: ServerState) -> bool:
        """Return whether nothing that a draft has read has changed since; otherwise its outcome means nothing."""
        assert drafted._draft is not None
        return drafted._draft.is_current() and self.registry.is_current(drafted.registry)

    def commit(self, drafted: ServerState) -> Commit:
        """Carry out the writes of a draft that is current."""
        assert drafted._draft is not None
        self.registry.adopt(drafted.registry)
        commit = drafted._draft.commit()
        if drafted.crds.changed is not None:
            now, uid = drafted.crds.changed
            self.crds.follow(now=now, uid=uid)
        return commit

    def within(self, context: WriteContext, ask: Ask) -> WriteContext:
        """Return the context of the same write on this draft."""
        return replace(
            context, objects=self.objects, registry=self.registry, admission=self.admission, writes=self, ask=ask
        )

    def own_write(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        moment: Moment,
        *,
        subresource: str = "",
        manager: str = OWN_MANAGER,
        dry_run: bool = False,
        force: bool = False,
    ) -> WriteContext:
        """Return the context of a write of the server itself.

        Args:
            served: Resource of the object.
            namespace: Namespace of the object; "" if its resource has none.
            name: Name of an object that exists or is applied; "" to create one.
            moment: Time, uid and random number.
            subresource: Subresource to write; "" for the object itself.
            manager: Field manager.
            dry_run: Whether to do everything except storing the object.
            force: Whether an apply takes fields over from other managers.
        """
        now, uid, random = moment
        return WriteContext(
            served=served,
            namespace=namespace,
            name=name,
            subresource=subresource,
            now=now,
            uid=uid,
            random=random,
            manager=manager,
            dry_run=dry_run,
            force=force,
            objects=self.objects,
            registry=self.registry,
            admission=self.admission,
            writes=self,
        )

    def read(self, served: ServedResource, namespace: str, name: str, *, revision: int | None = None) -> Resource:
        """Return an object, as it is or as it was at a revision of the store's window.

        Raises:
            NotFoundError: If it does not exist.
        """
        found = self.objects.get(served.storage, served.key(namespace, name), at=revision)
        if found is None:
            raise status_errors.not_found(served.type, name)
        return found

    # -- writes that other writes bring with them (``strategy.Writes``)

    def fields_of(self, kind: ResourceType[Resource], namespace: str, name: str) -> dict[str, object]:
        """Return an object.

        Raises:
            NotFoundError: If it does not exist.
        """
        served = self._served(kind)
        return decode_object(served, self.read(served, namespace, name))

    def put(self, kind: ResourceType[Resource], fields: dict[str, object]) -> None:
        """Store an object that exists as it is given."""
        served, metadata = self._served(kind), mapping(fields["metadata"])
        key = served.key(text(metadata.get("namespace")), text(metadata["name"]))
        self.objects.update(served.storage, key, served.codec.stored(fields))

    def update_status(self, kind: ResourceType[Resource], fields: dict[str, object], given: Given) -> None:
        """Store an object with another status, as a write to its ``/status`` does."""
        metadata = mapping(fields["metadata"])
        where = self._served(kind), text(metadata.get("namespace")), text(metadata["name"])
        update(self.own_write(*where, Moment(given.now), subresource="status"), fields)

    def delete_as(
        self,
        kind: ResourceType[Resource],
        namespace: str,
        name: str,
        options: DeleteOptions,
        *,
        now: float,
        dry_run: bool,
    ) -> DeleteResult:
        """Delete an object, as a part of a write that has passed admission."""
        context = self.own_write(self._served(kind), namespace, name, Moment(now), dry_run=dry_run)
        return delete(context, options, admitted=True)

    def create_beside(self, kind: ResourceType[Resource], fields: dict[str, object], *, uid: str, now: float) -> None:
        """Create an object without a namespace that belongs to another one."""
        create(self.own_write(self._served(kind), "", "", Moment(now, uid)), fields)

    def remove_beside(self, kind: ResourceType[Resource], name: str) -> None:
        """Remove such an object, which exists."""
        self.objects.delete(kind.group_resource, name)

    def delete_all(self, resource: str, *, now: float) -> None:
        """Delete all objects of a definition's resource, by its plural and group."""
        served = self.crds.resource_of(resource)
        if served is None:
            return
        # Some are deleted already when the next one is read, so it is too late to repeat this in a thread.
        with unbounded_growth():
            for item in self.objects.list(served.storage).items:
                context = self.own_write(served, item.namespace, item.name, Moment(now))
                if item.finalizers:
                    delete(context, DeleteOptions(), admitted=True)
                else:  # nothing holds it, and there may be very many: it need not be read
                    remove(context, item)

    def _served(self, kind: ResourceType[Resource]) -> ServedResource:
        served = self.registry.resource(kind)
        if served is None:
            raise status_errors.path_not_found()
        return served
