"""The verbs that change objects: what create, update, patch and delete do to the store and to what is served.

Each call is one transaction: it runs to its end without giving way, so reading, deciding and writing cannot be
interrupted by another request. Custom resource definitions have effects here, too: writing one changes the registry;
deleting one removes its objects first and ends when the last of them is gone (finalizers may hold them).

Source: apiserver pkg/registry/generic/registry/store.go; apiextensions-apiserver pkg/controller/finalizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

from deltaloop.api import kinds
from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, BadRequestError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.builtin_decoding import decode_builtin
from deltaloop.apiserver.core.builtin_strategies import (
    immutability_errors,
    prepare_builtin,
    rule_errors,
    without_empty_structs,
)
from deltaloop.apiserver.core.builtin_values import decode_values
from deltaloop.apiserver.core.builtin_writes import finish_new, finish_update, keep_given, prepare_new
from deltaloop.apiserver.core.conversion import to_stored
from deltaloop.apiserver.core.crd import CLEANUP_FINALIZER, default_crd, validate_crd
from deltaloop.apiserver.core.deletion import DeleteOptions, Fate, delete_object
from deltaloop.apiserver.core.encoding import decode_object, encode_json
from deltaloop.apiserver.core.failures import FieldError, invalid_value
from deltaloop.apiserver.core.json_values import at, items, mapping
from deltaloop.apiserver.core.managed_fields import with_created, with_entries, with_updated
from deltaloop.apiserver.core.metadata import check_metadata_types, mark_errors, metadata_errors, new_finalizer_errors
from deltaloop.apiserver.core.objects import (
    GENERATED_TRIES,
    Stamp,
    check_custom_kind,
    check_identity,
    check_kind,
    ends_with_update,
    generated_name,
    is_core,
    is_crd,
    new_object,
    updated_object,
)
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.requests import parse_revision
from deltaloop.apiserver.core.scaling import apply_scale
from deltaloop.apiserver.core.schema.admission import decode_by_schema, schema_errors
from deltaloop.apiserver.core.selection import EVERYTHING, Selection
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.store import Store, encode_object
from deltaloop.apiserver.core.stored_forms import StoredForms
from deltaloop.apiserver.core.validation.kinds import new_object_errors, object_errors, update_errors

FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_UNDELETABLE: Final = frozenset({"default", "kube-public", "kube-system"})
_NAMESPACES: Final = kinds.NAMESPACE.group_resource
_CRDS: Final = kinds.CUSTOM_RESOURCE_DEFINITION.group_resource

# Where etcd has the objects of kinds that have moved since.
_PLACES: Final = {
    "endpoints": "services/endpoints",
    "ingresses.networking.k8s.io": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}

Fields = dict[str, Any]
AsSent: TypeAlias = Literal["whole", "patched", "applied"]


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a delete did: the object, and whether it is gone."""

    object: Resource
    removed: bool


def key_of(served: ServedResource, namespace: str, name: str) -> str:
    """Return the key of an object in the store."""
    return join_key(namespace if served.type.namespaced else "", name)


def prefix_of(served: ServedResource, namespace: str) -> str:
    """Return the beginning of the keys of a namespace; empty for all of them."""
    return f"{namespace}/" if served.type.namespaced and namespace else ""


def uid_conflict(served: ServedResource, namespace: str, name: str, *, wanted: str, found: str) -> ApiError:
    """409: an update names an object that is not there any more, or never was."""
    kind = served.type
    place = f"{kind.group}/{kind.plural}" if served.custom else _PLACES.get(kind.group_resource, kind.plural)
    key = f"/registry/{place}/{key_of(served, namespace, name)}"
    return failures.uid_conflict(kind, name, storage_key=key, wanted=wanted, found=found)


@final
class Operations:
    """The changing verbs over one store and one registry."""

    def __init__(self, store: Store, registry: Registry) -> None:
        """Work on this store and this registry."""
        self.store = store
        self.registry = registry
        self._forms = StoredForms()

    def read(self, served: ServedResource, namespace: str, name: str, *, revision: int | None = None) -> Resource:
        """Return an object, as it is or as it was at a revision of the store's window.

        Raises:
            NotFoundError: If there is none.
        """
        found = self.store.get(served.storage, key_of(served, namespace, name), at=revision)
        if found is None:
            raise failures.not_found(served.type, name)
        return found

    def find(self, served: ServedResource, namespace: str, name: str) -> Resource | None:
        """Return an object as it is, or None."""
        return self.store.get(served.storage, key_of(served, namespace, name))

    def create(
        self,
        served: ServedResource,
        namespace: str,
        fields: Fields,
        *,
        stamp: Stamp,
        dry_run: bool = False,
        entries: list[Fields] | None = None,
        updated: str = "",
    ) -> Resource:
        """Store a new object.

        Args:
            served: The resource.
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
        self._decode(served, fields, as_sent="applied" if entries is not None else "whole")
        metadata = check_identity(served, fields, namespace=namespace, name=updated)
        decode_by_schema(served.schema, fields, applied=entries is not None)
        if updated and "uid" in metadata and entries is None:
            raise uid_conflict(served, namespace, metadata.get("name", ""), wanted=metadata["uid"], found="")
        self._check_namespace(served, namespace, metadata)
        self._check_crd_of(served)
        stamp.admit(served, namespace, None, fields)
        version = metadata.pop("resourceVersion", "")
        created = new_object(served, fields, metadata, stamp=stamp)
        prepare_new(served, created)
        generated = self._name(served, namespace, created["metadata"], stamp)
        name = created["metadata"].get("name", "")
        key = key_of(served, namespace, name)
        if is_core(served, "namespaces"):
            labels = {**created["metadata"].get("labels", {}), "kubernetes.io/metadata.name": name}
            created["metadata"]["labels"] = labels
        self._validate(
            served,
            name,
            metadata_errors(served, created["metadata"])
            + schema_errors(served.schema, created)
            + rule_errors(served, created)
            + object_errors(served, created)
            + new_object_errors(served, created),
        )
        created = self._defaulted_crd(served, created, old=None)
        created = self._owned(served, created, stamp) if entries is None else with_entries(created, entries)
        self._validate(served, name, finish_new(served, created, self.store, stamp))
        if version and not dry_run and not updated:
            raise failures.unexplained("resourceVersion should not be set on objects to be created")
        existing = self.store.get(served.storage, key)
        if existing is not None:
            deleted = existing.deletion_timestamp is not None
            raise failures.already_exists(served.type, name, being_deleted=deleted, generated=generated)
        if dry_run:
            return _unstored(served, created, resource_version=version)
        if entries is not None:
            self._forms.differs(served, stamp.uid, fields)
        return self.store.create(served.storage, key, _stored(served, self._applied_crd(served, created, stamp)))

    def update(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        fields: Fields,
        *,
        stamp: Stamp,
        subresource: str = "",
        dry_run: bool = False,
        entries: list[Fields] | None = None,
        as_sent: AsSent = "whole",
    ) -> Resource:
        """Store an object anew, if it differs from what is there.

        Args:
            served: The resource.
            namespace: Namespace in the URL.
            name: Name in the URL.
            fields: The object as sent, or as a patch made it from the present one.
            stamp: The time.
            subresource: "", ``status``, ``finalize`` or ``scale``; for ``scale`` the fields are a ``Scale``.
            dry_run: Whether to do everything but store it.
            entries: ``managedFields`` of an object that was applied; None makes the manager own what it changed.
            as_sent: How the fields came about, which decides how what cannot be decoded is refused.

        Raises:
            ApiError: What the real server answers in each case; nothing has changed then.
        """
        written = subresource
        if subresource == "scale":
            fields = apply_scale(served, decode_object(served, self.read(served, namespace, name)), fields)
            subresource = ""
        as_sent = "applied" if entries is not None else as_sent
        self._decode(served, fields, as_sent=as_sent)
        metadata = check_identity(served, fields, namespace=namespace, name=name, patched=as_sent == "patched")
        decode_by_schema(served.schema, fields, applied=entries is not None)
        current = self.read(served, namespace, name)
        before = decode_object(served, current)
        stamp.admit(served, namespace, before, fields)
        errors = self._check_versions(served, current, metadata, as_sent=as_sent)
        check_custom_kind(served, fields)
        errors += mark_errors(before["metadata"], metadata)
        if not subresource:
            keep_given(served, before, {**fields, "metadata": metadata})
        after = updated_object(served, before, fields, metadata, subresource=subresource)
        errors += metadata_errors(served, after["metadata"]) + schema_errors(served.schema, after)
        errors += rule_errors(served, after) + immutability_errors(served, before, after)
        if not subresource:
            errors += object_errors(served, after) + update_errors(served, before, after)
        if "deletionTimestamp" in after["metadata"]:
            old, new = before["metadata"].get("finalizers", []), after["metadata"].get("finalizers", [])
            errors += new_finalizer_errors(old, new)
        self._validate(served, name, errors)
        if not subresource:
            after = self._defaulted_crd(served, after, old=before)
        if entries is None:
            sent = metadata.get("managedFields")
            owned = with_updated(
                self.registry,
                served,
                before,
                after,
                sent,
                stamp,
                subresource=written,
            )
            after = {**after, "metadata": owned["metadata"]}
        else:
            after = with_entries(after, entries)
        if not subresource:
            self._validate(served, name, finish_update(served, before, after, self.store, stamp))
        if dry_run:
            return _unstored(served, after, resource_version=current.resource_version)
        if ends_with_update(served, after):
            self._remove(served.storage, current, now=stamp.now)
            return _unstored(served, after, resource_version=current.resource_version)
        after = self._applied_crd(served, after, stamp)
        another = self._forms.differs(served, current.uid, fields if entries is not None and not subresource else None)
        return self.store.update(served.storage, current.key, _stored(served, after), always=another)

    def patch(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        change: Callable[[Fields], Fields],
        *,
        stamp: Stamp,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Resource:
        """Change an object by a function of its present state, then do as ``update``.

        Raises:
            ApiError: As ``update``; and whatever ``change`` raises.
        """
        current = self.read(served, namespace, name)
        fields = change(decode_object(served, current))
        return self.update(
            served,
            namespace,
            name,
            fields,
            stamp=stamp,
            subresource=subresource,
            dry_run=dry_run,
            as_sent="patched",
        )

    def delete(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        options: DeleteOptions,
        *,
        now: float,
        dry_run: bool = False,
    ) -> Deleted:
        """Remove an object, or mark it to be removed when nothing holds it any more.

        Raises:
            ApiError: 404, 409 for preconditions, 403 for the first namespaces.
        """
        current = self.read(served, namespace, name)
        if is_core(served, "namespaces") and name in _UNDELETABLE:
            raise failures.protected(served.type, name, "this namespace may not be deleted")
        before = decode_object(served, current)
        fate, after = delete_object(served, before, options, now=now)
        if dry_run:
            return Deleted(_unstored(served, after, resource_version=current.resource_version), fate is Fate.REMOVED)
        if fate is Fate.REMOVED:
            self._remove(served.storage, current, now=now)
            return Deleted(current, removed=True)
        if fate is Fate.MARKED:
            current = self.store.update(served.storage, current.key, _stored(served, after))
            if is_crd(served):
                self._delete_objects_of(name, now=now)
        return Deleted(current, removed=False)

    def delete_collection(
        self,
        served: ServedResource,
        namespace: str,
        options: DeleteOptions,
        *,
        now: float,
        selection: Selection = EVERYTHING,
        dry_run: bool = False,
    ) -> tuple[Resource, ...]:
        """Delete every object that is selected and return them as they were."""
        page = self.store.list(served.storage, prefix=prefix_of(served, namespace), matches=selection.matches)
        for item in page.items:
            self.delete(served, item.namespace, item.name, options, now=now, dry_run=dry_run)
        return page.items

    def ensure_namespaces(self, *, stamps: Callable[[], Stamp]) -> None:
        """Create the namespaces that exist from the start, where they are missing."""
        served = self.registry.find("", "v1", "namespaces")
        if served is None:
            return
        for name in FIRST_NAMESPACES:
            if self.store.get(_NAMESPACES, name) is None:
                self.create(served, "", {"metadata": {"name": name}}, stamp=stamps())

    def ensure_policy(self, policy: Iterable[tuple[str, Fields]], *, stamps: Callable[[], Stamp]) -> None:
        """Create the first roles and bindings, where they are missing."""
        for plural, fields in policy:
            served = self.registry.find("rbac.authorization.k8s.io", "v1", plural)
            if served is not None and self.store.get(served.storage, fields["metadata"]["name"]) is None:
                self.create(served, "", fields, stamp=stamps())

    def serve_stored_crds(self, *, now: float) -> None:
        """Serve the resources of the CRDs in a restored store; those that had their names keep them."""
        crds = sorted(self.store.list(_CRDS).items, key=lambda crd: not _is_established(crd.to_dict()))
        self._apply_crds(crds, now=now)

    def _owned(self, served: ServedResource, created: Fields, stamp: Stamp) -> Fields:
        owned = with_created(self.registry, served, without_empty_structs(served, created), stamp)
        return {**created, "metadata": owned["metadata"]}

    def _decode(self, served: ServedResource, fields: Fields, *, as_sent: AsSent) -> None:
        try:
            check_kind(served, fields)
            if as_sent == "patched":
                check_metadata_types(served, fields)
            if served.custom:
                return
            decode_builtin(served, fields)
            decode_values(served, fields, applied=as_sent == "applied")
        except BadRequestError as error:
            why = error.status.message.partition(": ")[2]
            if as_sent == "patched":
                raise failures.invalid_patch(invalid_value("patch", "the object that results", why)) from None
            if as_sent == "applied" and not served.custom:
                raise failures.not_convertible(served.type, fields, why) from None
            raise
        prepare_builtin(served, fields)

    def _name(self, served: ServedResource, namespace: str, metadata: Fields, stamp: Stamp) -> bool:
        base = metadata.get("generateName", "")
        if metadata.get("name") or not base:
            return False
        for attempt in range(GENERATED_TRIES):
            metadata["name"] = generated_name(base, chance=stamp.chance, attempt=attempt)
            key = key_of(served, namespace, metadata["name"])
            if self.store.get(served.storage, key) is None:
                break
        return True

    def _check_namespace(self, served: ServedResource, namespace: str, metadata: Fields) -> None:
        if not served.type.namespaced:
            return
        found = self.store.get(_NAMESPACES, namespace)
        if found is None:
            raise failures.not_found(kinds.NAMESPACE, namespace)
        if found.deletion_timestamp is not None:
            name = metadata.get("name") or metadata.get("generateName", "")
            raise failures.namespace_terminating(served.type, name, namespace)

    def _check_versions(
        self, served: ServedResource, current: Resource, metadata: Fields, *, as_sent: AsSent
    ) -> list[FieldError]:
        uid = metadata.get("uid", "")
        another = bool(uid) and uid != current.uid
        if another and as_sent == "whole":
            raise uid_conflict(served, current.namespace, current.name, wanted=uid, found=current.uid)
        wanted = metadata.get("resourceVersion", "")
        number = parse_revision(wanted)
        if number is None:
            shown = encode_json(wanted[:64]).decode()
            raise failures.unexplained(f"strconv.ParseUint: parsing {shown}: invalid syntax")
        if number == 0 and (served.custom or not served.unconditional_update):
            error = invalid_value("metadata.resourceVersion", "0", "must be specified for an update")
            raise failures.unversioned_update(served.type, current.name, error)
        if number and wanted != current.resource_version:
            raise failures.conflict(served.type, current.name)
        return [invalid_value("metadata.uid", encode_json(uid).decode(), "field is immutable")] if another else []

    def _validate(self, served: ServedResource, name: str, errors: list[FieldError]) -> None:
        if errors:
            raise failures.invalid(served.type, name, errors)

    def _defaulted_crd(self, served: ServedResource, fields: Fields, *, old: Fields | None) -> Fields:
        if not is_crd(served):
            return fields
        crd = default_crd(fields)
        causes = validate_crd(crd, old=old)
        if causes:
            errors = [FieldError(cause.field, cause.reason, cause.message) for cause in causes]
            raise failures.invalid(served.type, crd["metadata"]["name"], errors)
        return crd

    def _applied_crd(self, served: ServedResource, fields: Fields, stamp: Stamp) -> Fields:
        if not is_crd(served):
            return fields
        return {**fields, "status": self.registry.apply_crd(fields, now=stamp.now)}

    def _check_crd_of(self, served: ServedResource) -> None:
        if not served.custom:
            return
        crd = self.store.get(_CRDS, served.type.group_resource)
        if crd is not None and crd.deletion_timestamp is not None:
            raise failures.method_not_allowed(
                "create not allowed while custom resource definition is terminating",
            )

    def _remove(self, resource: str, current: Resource, *, now: float) -> None:
        self.store.delete(resource, current.key)
        self._forms.forget(current.uid)
        if resource == _CRDS:
            self._stop_serving(current.name, now=now)
        elif self.store.count(resource) == 0:
            self._finish_crd(resource, now=now)

    def _delete_objects_of(self, crd_name: str, *, now: float) -> None:
        for served in self.registry.resources():
            if served.custom and served.type.group_resource == crd_name:
                self.delete_collection(served, "", DeleteOptions(), now=now)
                break
        if self.store.count(crd_name) == 0:
            self._finish_crd(crd_name, now=now)

    def _finish_crd(self, name: str, *, now: float) -> None:
        """Let go of a CRD that is being deleted and has no objects any more."""
        crd = self.store.get(_CRDS, name)
        if crd is None or crd.deletion_timestamp is None:
            return
        finalizers = [item for item in crd.finalizers if item != CLEANUP_FINALIZER]
        if not finalizers:
            self._remove(_CRDS, crd, now=now)
        elif len(finalizers) < len(crd.finalizers):
            fields = crd.to_dict()
            fields["metadata"]["finalizers"] = finalizers
            self.store.update(_CRDS, crd.key, fields)

    def _stop_serving(self, name: str, *, now: float) -> None:
        """Serve a CRD no longer; its names may now be free for another that waits for them."""
        self.registry.remove_crd(name)
        self._apply_crds(self.store.list(_CRDS).items, now=now)

    def _apply_crds(self, crds: Iterable[Resource], *, now: float) -> None:
        for crd in crds:
            fields = crd.to_dict()
            fields["status"] = self.registry.apply_crd(fields, now=now)
            self.store.update(_CRDS, crd.key, fields)


def _is_established(crd: Fields) -> bool:
    conditions = map(mapping, items(at(crd, "status", "conditions")))
    return any(item.get("type") == "Established" and item.get("status") == "True" for item in conditions)


def _stored(served: ServedResource, fields: Fields) -> Fields:
    """Return an object in the form that the store has it in."""
    return to_stored(served.type.api_version, served.type.kind, fields) if served.converted else fields


def _unstored(served: ServedResource, fields: Fields, *, resource_version: str = "") -> Resource:
    return Resource.from_json(encode_object(_stored(served, fields), resource_version=resource_version))
