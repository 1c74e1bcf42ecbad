"""State of the server, or of the draft of one write in a thread: stored objects, resources and admission."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, final

from deltaloop.api.json_values import mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.plugins import chain_of
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.draft import Ask, Commit, Draft
from deltaloop.apiserver.core.storage.encoding import decode_object, stored_version
from deltaloop.apiserver.core.storage.store import Objects, RevisionStore
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.write_context import OWN_MANAGER, Admission, WriteContext
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.crd_lifecycle import CrdLifecycle
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import DeleteResult, delete
from deltaloop.apiserver.core.writes.storing import remove
from deltaloop.apiserver.core.writes.update import update
from deltaloop.schemas.work import unbounded_growth

_FEW: Final = 128
"""Objects of a CRD that its deletion deletes at once."""


@final
class ServerState:
    """Store, registry and admission of one server, or of the draft of one write."""

    def __init__(self, store: RevisionStore, registry: Registry, admission: Admission | None = None) -> None:
        self.store = store
        self.objects: Objects = store
        self.registry = registry
        self.admission: Admission = admission if admission is not None else chain_of()
        self.crds: CrdLifecycle = CrdLifecycle(store, registry)
        self._draft: Draft | None = None

    def draft(self, ask: Ask) -> ServerState:
        """Return a draft for one write in a thread; ``ask`` runs a function on the event loop and waits."""
        drafted = ServerState(self.store, self.registry.branch(), self.admission)
        drafted.objects = drafted._draft = draft = Draft(self.store, ask=ask)
        drafted.crds = CrdLifecycle(draft, drafted.registry, drafted=True)
        return drafted

    def is_current(self, drafted: ServerState) -> bool:
        """Return whether the reads of a draft are still current. Otherwise its result is meaningless."""
        assert drafted._draft is not None
        return drafted._draft.is_current() and self.registry.is_current(drafted.registry)

    def commit(self, drafted: ServerState) -> Commit:
        assert drafted._draft is not None
        self.registry.adopt(drafted.registry)
        commit = drafted._draft.commit()
        if drafted.crds.changed is not None:
            now, uid = drafted.crds.changed
            self.crds.follow(now=now, uid=uid)
        return commit

    def within(self, context: WriteContext, ask: Ask) -> WriteContext:
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
        """Return the context of a write by the server itself; absent parts of the address are empty."""
        return WriteContext(
            served=served,
            namespace=namespace,
            name=name,
            subresource=subresource,
            moment=moment,
            manager=manager,
            dry_run=dry_run,
            force=force,
            objects=self.objects,
            registry=self.registry,
            admission=self.admission,
            writes=self,
        )

    def version_of(self, resource: str, obj: Resource | None) -> ServedResource | None:
        """Return a served version of a resource, preferably the version of the stored object."""
        versions = self.registry.sharing(resource)
        own = stored_version(obj) if obj is not None else ""
        return next((each for each in versions if each.type.api_version == own), versions[0] if versions else None)

    def read(self, served: ServedResource, namespace: str, name: str, *, revision: int | None = None) -> Resource:
        found = self.objects.get(served.storage, served.key(namespace, name), at=revision)
        if found is None:
            raise status_errors.not_found(served.type, name)
        return found

    # -- side effects of other writes (``strategy.Writes``)

    def fields_of(self, kind: ResourceType[Resource], namespace: str, name: str) -> dict[str, object]:
        served = self._served(kind)
        return decode_object(served, self.read(served, namespace, name))

    def put(self, kind: ResourceType[Resource], fields: dict[str, object]) -> None:
        served, metadata = self._served(kind), mapping(fields["metadata"])
        key = served.key(text(metadata.get("namespace")), text(metadata["name"]))
        self.objects.update(served.storage, key, served.codec.stored(fields))

    def update_status(self, kind: ResourceType[Resource], fields: dict[str, object], moment: Moment) -> None:
        metadata = mapping(fields["metadata"])
        where = self._served(kind), text(metadata.get("namespace")), text(metadata["name"])
        update(self.own_write(*where, Moment(moment.now), subresource="status"), fields)

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
        context = self.own_write(self._served(kind), namespace, name, Moment(now), dry_run=dry_run)
        return delete(context, options, admitted=True)

    def create_beside(self, kind: ResourceType[Resource], fields: dict[str, object], *, uid: str, now: float) -> None:
        create(self.own_write(self._served(kind), "", "", Moment(now, uid)), fields)

    def remove_beside(self, kind: ResourceType[Resource], name: str) -> None:
        self.objects.delete(kind.group_resource, name)

    def delete_few(self, resource: str, *, now: float) -> None:
        if self.objects.count(resource) > _FEW:  # a controller deletes them
            return
        # The deletes cannot be repeated in a thread after some of them have succeeded.
        with unbounded_growth():
            for item in self.objects.list(resource).items:
                self.delete_instance(resource, item, now=now)

    def delete_instance(self, resource: str, item: Resource, *, now: float) -> None:
        """Delete an object of a CRD that is being deleted."""
        served = self.version_of(resource, item)
        if served is None:
            return
        context = self.own_write(served, item.namespace, item.name, Moment(now))
        if item.finalizers:
            delete(context, DeleteOptions(), admitted=True)
        else:  # without finalizers, it need not be decoded, which matters for very many objects
            remove(context, item)

    def _served(self, kind: ResourceType[Resource]) -> ServedResource:
        served = self.registry.resource(kind)
        if served is None:
            raise status_errors.path_not_found()
        return served
