"""The verbs that change objects: what create, update, patch and delete do to the store and to what is served.

Each call is one transaction: it runs to its end without giving way, so reading, deciding and writing cannot be
interrupted by another request. What writing a custom resource definition does beyond that is in ``crd_lifecycle``, how
an object that was sent is read in ``sent_objects``, and what the server owns of it in ``objects``.

Source: apiserver pkg/registry/generic/registry/store.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, final

from deltaloop.api import kinds
from deltaloop.api.json_values import copied, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes, Operation
from deltaloop.apiserver.core.admission.chain import Chain, Effect
from deltaloop.apiserver.core.admission.plugins import chain_of
from deltaloop.apiserver.core.apply.field_manager import with_entries
from deltaloop.apiserver.core.codec import AsSent
from deltaloop.apiserver.core.kinds.scaling import apply_scale, check_scale, scale_of
from deltaloop.apiserver.core.metadata.generated_names import GENERATED_TRIES, generated_name
from deltaloop.apiserver.core.metadata.rules import mark_errors
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.draft import Ask, Commit, Draft
from deltaloop.apiserver.core.storage.encoding import decode_object, with_resource_version
from deltaloop.apiserver.core.storage.selection import EVERYTHING, Selection
from deltaloop.apiserver.core.storage.store import Objects, RevisionStore, encode_object
from deltaloop.apiserver.core.storage.store_errors import OversizedError
from deltaloop.apiserver.core.storage.stored_size import MAX_REQUEST, MAX_STORE, protobuf_size, request_size
from deltaloop.apiserver.core.strategy import Given
from deltaloop.apiserver.core.wire.requests import parse_revision
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.crd_lifecycle import CrdLifecycle
from deltaloop.apiserver.core.writes.deletion import Fate, delete_object
from deltaloop.apiserver.core.writes.managed_fields import (
    Entries,
    can_be_owned,
    entries_of,
    with_created,
    with_old_times,
    with_updated,
)
from deltaloop.apiserver.core.writes.objects import (
    changed_errors,
    changed_warnings,
    count_change,
    counts_as_change,
    ends_with_update,
    has_empty_part,
    new_errors,
    new_object,
    new_warnings,
    refuse,
    told_by_status,
    updated_object,
)
from deltaloop.apiserver.core.writes.sent_objects import (
    check_identity,
    check_namespace,
    check_said_kind,
    check_version_sent,
    check_versions,
    decode_sent,
    uid_conflict,
)
from deltaloop.schemas.completing import without_zeros
from deltaloop.schemas.growth import ALLOWED, MOST_GROWN

_MARKS: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
_NAMESPACES: Final = kinds.NAMESPACE.group_resource
_STORED_AS_JSON: Final = ("apiextensions.k8s.io", "apiregistration.k8s.io")


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """What a delete did: the object, and whether it is gone."""

    object: Resource
    removed: bool


@final
class Operations:
    """The changing verbs over one store and one registry."""

    def __init__(self, store: RevisionStore, registry: Registry, admission: Chain | None = None) -> None:
        """Work on this store and this registry, with these plugins of admission; the default ones if None."""
        self.store = store
        self.registry = registry
        self.admission: Chain = admission if admission is not None else chain_of()
        self.crds: CrdLifecycle = CrdLifecycle(store, registry)
        self._objects: Objects = store
        self._draft: Draft | None = None

    @property
    def objects(self) -> Objects:
        """What these verbs read and write: the store, or the draft of one write."""
        return self._objects

    def draft(self, ask: Ask) -> Operations:
        """Return the same verbs for one write that is worked out in a thread; ``commit`` carries it out.

        Args:
            ask: Has a question answered on the loop; the thread waits for it.
        """
        drafted = Operations(self.store, self.registry.branch(), self.admission)
        drafted._objects = drafted._draft = draft = Draft(self.store, ask=ask)
        drafted.crds = CrdLifecycle(draft, drafted.registry, drafted=True)
        return drafted

    def is_current(self, drafted: Operations) -> bool:
        """Tell whether nothing that a draft has read has changed since; if it has, its outcome means nothing."""
        assert drafted._draft is not None
        return drafted._draft.is_current() and self.registry.is_current(drafted.registry)

    def commit(self, drafted: Operations) -> Commit:
        """Carry out what a draft that is current has worked out."""
        assert drafted._draft is not None
        self.registry.adopt(drafted.registry)
        commit = drafted._draft.commit()
        if drafted.crds.changed is not None:
            now, uid = drafted.crds.changed
            self.crds.follow(now=now, uid=uid)
        return commit

    def read(self, served: ServedResource, namespace: str, name: str, *, revision: int | None = None) -> Resource:
        """Return an object, as it is or as it was at a revision of the store's window.

        Raises:
            NotFoundError: If there is none.
        """
        found = self._objects.get(served.storage, served.key(namespace, name), at=revision)
        if found is None:
            raise failures.not_found(served.type, name)
        return found

    def find(self, served: ServedResource, namespace: str, name: str) -> Resource | None:
        """Return an object as it is, or None."""
        return self._objects.get(served.storage, served.key(namespace, name))

    def create(
        self,
        served: ServedResource,
        namespace: str,
        fields: dict[str, Any],
        *,
        stamp: Stamp,
        dry_run: bool = False,
        entries: list[dict[str, object]] | None = None,
        updated: str = "",
    ) -> Resource:
        """Store a new object.

        Args:
            served: The kind that the request names, as it is served.
            namespace: Namespace in the URL, "" if the resource has none.
            fields: The object as sent.
            stamp: Time, uid and chance.
            dry_run: Whether to do everything but store it; the answer has the resource version that was sent then.
            entries: ``managedFields`` of an object that was applied; None makes the manager the owner of everything.
            updated: Name in the URL of an update or an apply that turned out to be a create; its resource version says
                nothing then.

        Raises:
            ApiError: What the real server answers in each case; nothing has changed then.
        """
        applied = entries is not None
        decode_sent(served, fields, as_sent="applied" if applied else "whole")
        served = served.asking(stamp.outside)
        metadata = check_identity(served, fields, namespace=namespace, name=updated)
        if updated and "uid" in metadata and entries is None:
            name, uid = text(metadata.get("name")), text(metadata["uid"])
            raise uid_conflict(served, namespace, name, wanted=uid, found="")
        if updated:
            check_version_sent(metadata)
        marks = {name: metadata[name] for name in _MARKS if updated and metadata.get(name) is not None}
        sent = Entries(partial(self._entries_as_sent, served, None, fields, metadata, stamp, "", marks), entries)
        shown = _shown(served, "")
        after, wanted = shown({**fields, "metadata": metadata}), text(metadata.get("name"))
        where = served, namespace, wanted, stamp, dry_run
        attributes = self.attributes("CREATE", *where, after=after, entries=sent)
        admitted = self.admission.mutate(attributes)
        if admitted is not None:
            entries = sent.admitted(admitted, stamp)
            fields, metadata = admitted, dict(mapping(admitted["metadata"]))
            check_namespace(served, metadata, namespace)
        served.strategy.check_new(served.type.group_resource, self)
        stamp.admit(served, namespace, None, fields)
        version = text(metadata.pop("resourceVersion", ""))
        created = new_object(served, fields, metadata, stamp=stamp)
        generated = self._name(served, namespace, mapping(created["metadata"]), stamp)
        served.strategy.prepare_new(created)
        name = text(mapping(created["metadata"]).get("name"))
        key = served.key(namespace, name)
        if entries is None and not can_be_owned(self.registry, served, fields):
            entries = []
        created = self._finished_new(served, created, stamp, entries, marks)
        if updated:
            stamp.may_create()
        effects = self.admission.validate(replace(attributes, after=shown(created), name=name))
        # What is no number is no version here, and lost with everything else that the server sets itself.
        if parse_revision(version) and not dry_run and not updated:
            raise failures.unexplained("resourceVersion should not be set on objects to be created")
        existing = self._objects.get(served.storage, key)
        if existing is not None:
            deleted = existing.deletion_timestamp is not None
            raise failures.already_exists(served.type, name, being_deleted=deleted, generated=generated)
        if dry_run:
            return _unstored(served, created, resource_version=version)
        created = served.strategy.store(None, created, self, stamp)
        stored = self._stored(served, created, partial(self._objects.create, served.storage, key), applied=applied)
        self._carry_out(effects)
        return stored

    def update(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        fields: dict[str, Any],
        *,
        stamp: Stamp,
        subresource: str = "",
        dry_run: bool = False,
        entries: list[dict[str, object]] | None = None,
        as_sent: AsSent = "whole",
        pruned: tuple[str, ...] = (),
    ) -> Resource:
        """Store an object anew, if it differs from what is there.

        Args:
            served: The kind that the request names, as it is served.
            namespace: Namespace in the URL.
            name: Name in the URL.
            fields: The object as sent, or as a patch made it from the present one.
            stamp: What the write takes from outside: time, uid, chance, and who writes.
            subresource: What is written to, "" for the object itself; of ``scale``, the fields are the whole object.
            dry_run: Whether to do everything but store it.
            entries: ``managedFields`` of an object that was applied; None makes the manager own what it changed.
            as_sent: How the fields came about, which decides how what cannot be decoded is refused.
            pruned: Paths of applied fields that are not stored; they count as changes all the same.

        Raises:
            ApiError: What the real server answers in each case; nothing has changed then.
        """
        written, subresource = subresource, "" if subresource == "scale" else subresource
        as_sent = "applied" if entries is not None else as_sent
        empty = not written and has_empty_part(served, fields)
        dropped = decode_sent(served, fields, as_sent=as_sent)
        served = served.asking(stamp.outside)
        metadata = check_identity(served, fields, namespace=namespace, name=name, patched=as_sent == "patched")
        current = self.read(served, namespace, name)
        before = decode_object(served, current)
        sent = Entries(partial(self._entries_as_sent, served, before, fields, metadata, stamp, written, {}), entries)
        shown = _shown(served, written)
        attributes = self.attributes(
            "UPDATE",
            served,
            namespace,
            name,
            stamp,
            dry_run,
            written,
            after=shown({**fields, "metadata": metadata}),
            before=shown(before),
            entries=sent if written != "scale" else list,  # a Scale is shown without
        )
        admitted = self.admission.mutate(attributes)
        if admitted is not None:
            fields = apply_scale(served, before, admitted) if written == "scale" else admitted
            metadata = dict(mapping(fields["metadata"]))
            check_namespace(served, metadata, namespace)
            entries = sent.admitted(admitted, stamp)
        stamp.admit(served, namespace, before, fields)
        errors = check_versions(served, current, metadata, as_sent=as_sent)
        check_said_kind(served, fields)
        errors += mark_errors(mapping(before["metadata"]), metadata, dropped)
        if subresource == "status":
            errors = told_by_status(served, errors)
        if not subresource:
            served.strategy.keep(before, {**fields, "metadata": metadata})
        after = updated_object(served, before, fields, metadata, subresource=subresource)
        differs = empty or counts_as_change(served, pruned, subresource=written)
        if differs and not written:
            count_change(before, after)
        errors += changed_errors(served, before, after, whole=not subresource)
        stamp.warn(str(error) for error in errors if error.tolerated)
        refuse(served, name, errors)
        if written in ("", "scale"):
            stamp.warn(changed_warnings(served.strategy, before, after))
        elif written == "status":
            stamp.warn(served.strategy.warn_status(after))
        if entries is None and not can_be_owned(self.registry, served, fields):
            entries = entries_of(before)
        after = self._finished_update(
            served,
            before,
            after,
            stamp,
            entries,
            metadata.get("managedFields"),
            written=written,
            new_times=bool(pruned),
        )
        effects = self.admission.validate(replace(attributes, after=shown(_with_version(after, current))))
        ends = ends_with_update(served, after)
        if ends and not dry_run:
            self._remove(served, current, now=stamp.now)
        if ends or dry_run:
            return _unstored(served, after, resource_version=current.resource_version)
        after = served.strategy.store(before, after, self, stamp)
        write = partial(self._objects.update, served.storage, current.key, always=differs)
        stored = self._stored(served, after, write, applied=as_sent == "applied")
        self._carry_out(effects)
        return stored

    def update_scale(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        scale: dict[str, object],
        *,
        stamp: Stamp,
        dry_run: bool = False,
        as_sent: AsSent = "whole",
    ) -> Resource:
        """Store an object with the replicas of a ``Scale``, as ``update``.

        Raises:
            ApiError: As ``update``; and if the ``Scale`` cannot be read.
        """
        served = served.asking(stamp.outside)
        check_scale(scale, patched=as_sent == "patched")
        fields = apply_scale(served, decode_object(served, self.read(served, namespace, name)), scale)
        where = served, namespace, name
        return self.update(*where, fields, stamp=stamp, subresource="scale", dry_run=dry_run, as_sent=as_sent)

    def patch(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        change: Callable[[dict[str, object]], dict[str, object]],
        *,
        stamp: Stamp,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Resource:
        """Change an object by a function of its present state, then do as ``update``.

        Raises:
            ApiError: As ``update``; and whatever ``change`` raises.
        """
        served = served.asking(stamp.outside)
        current = self.read(served, namespace, name)
        fields = change(decode_object(served, current))
        where = served, namespace, name
        if subresource == "scale":
            return self.update_scale(*where, fields, stamp=stamp, dry_run=dry_run, as_sent="patched")
        return self.update(*where, fields, stamp=stamp, subresource=subresource, dry_run=dry_run, as_sent="patched")

    def delete(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        options: DeleteOptions,
        *,
        stamp: Stamp,
        dry_run: bool = False,
        admitted: bool = False,
        one_of_many: bool = False,
    ) -> DeleteResult:
        """Remove an object, or mark it to be removed when nothing holds it any more.

        Args:
            served: The kind that the request names, as it is served.
            namespace: Namespace in the URL.
            name: Name in the URL.
            options: What is asked.
            stamp: The time, and who asks.
            dry_run: Whether nothing is to be removed.
            admitted: Whether this is a part of a write that has passed admission.
            one_of_many: Whether the request is about a collection: then admission is told no name.

        Raises:
            ApiError: 404, 409 for preconditions, and what admission refuses.
        """
        served = served.asking(stamp.outside)
        if options.policy is None and served.strategy.delete_warning:
            stamp.warn([served.strategy.delete_warning])
        current, now = self.read(served, namespace, name), stamp.now
        before = decode_object(served, current)
        fate, after = delete_object(served, before, options, now=now)
        if not admitted:
            told = "" if one_of_many else name
            self.admit(self.attributes("DELETE", served, namespace, told, stamp, dry_run, before=before))
        if dry_run:
            return DeleteResult(
                _unstored(served, after, resource_version=current.resource_version), fate is Fate.REMOVED
            )
        if fate is Fate.REMOVED:
            if after != before:
                current = self._objects.update(served.storage, current.key, served.codec.stored(after))
            removed_at = self._remove(served, current, now=now)
            return DeleteResult(with_resource_version(current, removed_at), removed=True)
        if fate is Fate.MARKED:
            current = self._objects.update(served.storage, current.key, served.codec.stored(after))
            served.strategy.marked(current, self, now)
        return DeleteResult(current, removed=False)

    def _stored(
        self,
        served: ServedResource,
        fields: dict[str, object],
        write: Callable[..., Resource],
        *,
        applied: bool,
    ) -> Resource:
        """Store an object. One that is too large loses its ``managedFields``, unless it was applied.

        Raises:
            ApiError: 500 if it is too large, or if all objects are together.

        Source: apiserver pkg/endpoints/handlers/create.go, update.go, patch.go (``isTooLargeError``).
        """
        if self.store.size > MAX_STORE:
            raise failures.store_full()
        stored, size = served.codec.stored(fields), 0
        try:
            return write(stored)
        except OversizedError as error:
            size = error.size
        for candidate in (stored,) if applied else (stored, with_entries(stored, [])):
            if served.flags.protobuf and served.type.group not in _STORED_AS_JSON:
                size = request_size(protobuf_size(served.schema.tree, candidate))
            elif candidate is not stored:
                size = request_size(len(encode_object(candidate, resource_version="")))
            if size <= MAX_REQUEST:
                return write(candidate, any_size=True)
        raise failures.too_large_to_store(size)

    def selected(self, served: ServedResource, namespace: str, selection: Selection) -> tuple[Resource, ...]:
        """Return the objects of a namespace, or of all of them, that are selected."""
        return self._objects.list(served.storage, prefix=served.prefix(namespace), matches=selection.matches).items

    def _finished_new(
        self,
        served: ServedResource,
        created: dict[str, object],
        stamp: Stamp,
        entries: list[dict[str, object]] | None,
        marks: dict[str, object],
    ) -> dict[str, object]:
        """Return a new object, checked, with its owners and what the server adds; it may not be stored yet.

        Marks of a deletion that an update has sent have an owner, although the new object is without them.
        """
        name = text(mapping(created["metadata"]).get("name"))
        refuse(served, name, new_errors(served, created))
        stamp.warn(new_warnings(served.strategy, created))
        served.codec.settle(created)
        if entries is None:
            entries = self._entries_of_new(served, created, marks, stamp)
        created = with_entries(created, entries)
        refuse(served, name, served.strategy.finish_new(created, self._objects, stamp))
        return created

    def _entries_of_new(
        self, served: ServedResource, created: dict[str, object], marks: dict[str, object], stamp: Stamp
    ) -> list[dict[str, object]]:
        set_by_author = without_zeros(served.schema.tree, created)
        sent: dict[str, object] = {**set_by_author, "metadata": {**mapping(set_by_author["metadata"]), **marks}}
        return entries_of(with_created(self.registry, served, sent, stamp))

    def _entries_as_sent(
        self,
        served: ServedResource,
        before: dict[str, object] | None,
        fields: dict[str, object],
        metadata: dict[str, object],
        stamp: Stamp,
        subresource: str,
        marks: dict[str, object],
    ) -> list[dict[str, object]]:
        """Return the entries that a write leaves before admission: what that adds belongs to nobody.

        Args:
            served: The kind that the request names, as it is served.
            before: The object as it is; None for a new one.
            fields: The object as sent.
            metadata: Its normalized metadata.
            stamp: The time and the manager.
            subresource: What is written to.
            marks: Marks of a deletion that a new object was sent with.
        """
        if not can_be_owned(self.registry, served, fields):
            return entries_of(before or {})
        fields, metadata = copied(fields), copied(metadata)
        if before is None:
            created = new_object(served, fields, metadata, stamp=stamp)
            served.strategy.prepare_new(created)
            served.codec.settle(created)
            return self._entries_of_new(served, created, marks, stamp)
        part = "" if subresource == "scale" else subresource
        if not part:
            served.strategy.keep(before, {**fields, "metadata": metadata})
        after = updated_object(served, before, fields, metadata, subresource=part)
        served.codec.settle(after)
        sent = metadata.get("managedFields")
        return entries_of(with_updated(self.registry, served, before, after, sent, stamp, subresource=subresource))

    def _finished_update(
        self,
        served: ServedResource,
        before: dict[str, object],
        after: dict[str, object],
        stamp: Stamp,
        entries: list[dict[str, object]] | None,
        sent: object,
        *,
        written: str,
        new_times: bool,
    ) -> dict[str, object]:
        """Return a changed object with its owners and what the server adds; ``written`` is the subresource."""
        whole = written in ("", "scale")
        served.codec.settle(after)
        if entries is None:
            after = with_updated(self.registry, served, before, after, sent, stamp, subresource=written)
        else:
            after = with_entries(after, entries)
            if not new_times:
                after = with_old_times(before, after)
        if whole:
            errors = served.strategy.finish_update(before, after, self._objects, stamp)
            refuse(served, text(mapping(after["metadata"])["name"]), errors)
        return after

    def _name(self, served: ServedResource, namespace: str, metadata: dict[str, object], stamp: Stamp) -> bool:
        base = text(metadata.get("generateName"))
        if metadata.get("name") or not base:
            return False
        for attempt in range(GENERATED_TRIES):
            name = metadata["name"] = generated_name(base, chance=stamp.chance, attempt=attempt)
            if self._objects.get(served.storage, served.key(namespace, name)) is None:
                break
        return True

    def admit(self, attributes: AdmissionAttributes) -> dict[str, object] | None:
        """Let admission change and look at what is not stored itself, such as a binding; None if nothing is changed.

        Raises:
            ApiError: If a plugin refuses it.
        """
        admitted = self.admission.mutate(attributes)
        if admitted is not None:
            attributes = replace(attributes, after=admitted)
        effects = self.admission.validate(attributes)
        if not attributes.dry_run:
            self._carry_out(effects)
        return admitted

    def attributes(
        self,
        operation: Operation,
        served: ServedResource,
        namespace: str,
        name: str,
        stamp: Stamp,
        dry_run: bool,
        subresource: str = "",
        *,
        after: dict[str, object] | None = None,
        before: dict[str, object] | None = None,
        entries: Callable[[], list[dict[str, object]]] = list,
    ) -> AdmissionAttributes:
        """Return what admission is told of a write."""
        return AdmissionAttributes(
            operation=operation,
            served=served,
            subresource=subresource,
            namespace=name if served.storage == _NAMESPACES else namespace,
            name=name,
            after=after,
            before=before,
            stamp=stamp,
            dry_run=dry_run,
            objects=self._objects,
            registry=self.registry,
            entries=entries,
        )

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        """Write what admission wants to be written with an object."""
        for effect in effects:
            effect(self)

    def _remove(self, served: ServedResource, current: Resource, *, now: float) -> int:
        """Remove an object and what goes with it, and return the revision of its own removal."""
        self._objects.delete(served.storage, current.key)
        removed_at = self._objects.revision
        served.strategy.removed(served.storage, current, self, now)
        return removed_at

    def _served(self, kind: ResourceType[Resource]) -> ServedResource:
        served = self.registry.resource(kind)
        if served is None:
            raise failures.path_not_found()
        return served

    def fields_of(self, kind: ResourceType[Resource], namespace: str, name: str) -> dict[str, object]:
        """Return an object.

        Raises:
            NotFoundError: If there is none.
        """
        served = self._served(kind)
        return decode_object(served, self.read(served, namespace, name))

    def put(self, kind: ResourceType[Resource], fields: dict[str, object]) -> None:
        """Store an object that is there anew, as it is given."""
        served, metadata = self._served(kind), mapping(fields["metadata"])
        key = served.key(text(metadata.get("namespace")), text(metadata["name"]))
        self._objects.update(served.storage, key, served.codec.stored(fields))

    def update_status(self, kind: ResourceType[Resource], fields: dict[str, object], given: Given) -> None:
        """Store an object with another status, as a write to its ``/status`` does."""
        metadata = mapping(fields["metadata"])
        where = self._served(kind), text(metadata.get("namespace")), text(metadata["name"])
        self.update(*where, fields, stamp=Stamp(now=given.now), subresource="status")

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
        stamp = Stamp(now=now)
        return self.delete(self._served(kind), namespace, name, options, stamp=stamp, dry_run=dry_run, admitted=True)

    def create_beside(self, kind: ResourceType[Resource], fields: dict[str, object], *, uid: str, now: float) -> None:
        """Create an object without a namespace that belongs to another one."""
        self.create(self._served(kind), "", fields, stamp=Stamp(now=now, uid=uid))

    def remove_beside(self, kind: ResourceType[Resource], name: str) -> None:
        """Remove such an object; it is there."""
        self._objects.delete(kind.group_resource, name)

    def delete_all(self, resource: str, *, now: float) -> None:
        """Delete all objects of a definition's resource, by its plural and group."""
        served = self.crds.resource_of(resource)
        if served is None:
            return
        # Some are deleted already when the next one is read, so it is too late to repeat this in a thread.
        allowed = ALLOWED.set(MOST_GROWN)
        try:
            for item in self.selected(served, "", EVERYTHING):
                if item.finalizers:
                    self.delete(served, item.namespace, item.name, DeleteOptions(), stamp=Stamp(now=now), admitted=True)
                else:  # nothing holds it, and there may be very many: it need not be read
                    self._remove(served, item, now=now)
        finally:
            ALLOWED.reset(allowed)


def _shown(served: ServedResource, subresource: str) -> Callable[[dict[str, object]], dict[str, object]]:
    """Return what shows an object as a write to this subresource has it."""
    if subresource == "scale":
        return partial(scale_of, served, may_be_unset=True)
    named = {"kind": served.type.kind, "apiVersion": served.type.api_version}
    return lambda fields: {**named, **fields}


def _with_version(fields: dict[str, object], current: Resource) -> dict[str, object]:
    """Return a changed object with the resource version that it changes, whether that was sent or not."""
    metadata = {**mapping(fields["metadata"]), "resourceVersion": current.resource_version}
    return {**fields, "metadata": metadata}


def _unstored(served: ServedResource, fields: dict[str, object], *, resource_version: str = "") -> Resource:
    """Return an object as it would be stored."""
    return Resource.from_json(encode_object(served.codec.stored(fields), resource_version=resource_version))
