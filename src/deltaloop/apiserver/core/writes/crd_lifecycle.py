"""Side effects of writing and deleting a CustomResourceDefinition, with an APIService per served group version.

    written     its names are accepted or rejected, and its resources are served
    deleted     its finalizer keeps it until the last of its objects is gone, and new objects are rejected
    removed     its resources are not served any more, and another CRD can use its names

Source: apiextensions-apiserver pkg/controller/finalizer, pkg/controller/status; Kubernetes
pkg/controlplane/controller/crdregistration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.apply.field_manager import Writer, with_entries
from deltaloop.apiserver.core.crds.definition import CLEANUP_FINALIZER, is_established, with_condition
from deltaloop.apiserver.core.kinds.extensions import WHILE_DEFINED, follows_definitions, own_service, service_name
from deltaloop.apiserver.core.kinds.networking import uid_beside
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.storage.store import Objects
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.write_context import OWN_MANAGER
from deltaloop.apiserver.core.writes.managed_fields import changed_entries

_NO_STATUS: Final[dict[str, object]] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}}
_API_SERVICES: Final = kinds.API_SERVICE.group_resource
_IN_PROGRESS: Final = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
_FAILED: Final = "InstanceDeletionFailed"
_COMPLETED: Final = ("False", "InstanceDeletionCompleted", "removed all instances")
_NEVER_ESTABLISHED: Final = ("False", "NeverEstablished", "resource was never established")
CRDS: Final = kinds.CUSTOM_RESOURCE_DEFINITION.group_resource


@final
class CrdLifecycle:
    def __init__(self, store: Objects, registry: Registry, *, drafted: bool = False) -> None:
        self._store = store
        self._registry = registry
        self._drafted = drafted
        self._followed: dict[tuple[str, str], tuple[int, int]] = {}
        self.changed: tuple[float, str] | None = None  # time of the last change of the served resources, and CRD's UID

    def serve_stored(self, *, now: float) -> None:
        """Serve the CRDs of a restored store; established CRDs keep their names."""
        crds = sorted(self._store.list(CRDS).items, key=lambda crd: not is_established(crd.to_dict()))
        self._apply(crds, now=now)

    def applied(self, crd: dict[str, object], moment: Moment) -> dict[str, object]:
        served = self._registry.resource(kinds.CUSTOM_RESOURCE_DEFINITION)
        assert served is not None
        status = self._registry.apply_crd(crd, now=moment.now)
        self.follow(now=moment.now, uid=text(at(crd, "metadata", "uid")))
        # The stored versions are written with the CRD. The server writes the rest of the status afterwards.
        stored = {**_NO_STATUS, **mapping(crd.get("status")), "storedVersions": status["storedVersions"]}
        before = {**crd, "status": stored}
        writer = Writer(OWN_MANAGER, moment.time, "status")
        after = {**crd, "status": status}
        return with_entries(after, changed_entries(self._registry, served, before, after, None, writer))

    def check_open(self, kind: ResourceType[Resource], name: str) -> None:
        crd = self._store.get(CRDS, kind.group_resource)
        if crd is not None and crd.deletion_timestamp is not None:
            raise status_errors.protected(
                kind, name, "create not allowed while custom resource definition is terminating"
            )

    def begin_deletion(self, name: str, *, now: float) -> None:
        crd = self._store.get(CRDS, name)
        if crd is not None and CLEANUP_FINALIZER in crd.finalizers and is_established(crd.to_dict()):
            self._report(crd, _IN_PROGRESS, crd.finalizers, now=now)

    def report_failure(self, name: str, why: str, *, now: float) -> None:
        """Report an object that cannot be deleted, once."""
        crd = self._store.get(CRDS, name)
        conditions = items(at(crd.to_dict(), "status", "conditions")) if crd is not None else ()
        if crd is not None and all(at(item, "reason") != _FAILED for item in conditions):
            self._report(crd, ("True", _FAILED, f"could not issue all deletes: {why}"), crd.finalizers, now=now)

    def _report(self, crd: Resource, state: tuple[str, str, str], finalizers: Sequence[str], *, now: float) -> None:
        """Write the condition ``Terminating`` and the finalizers."""
        served = self._registry.resource(kinds.CUSTOM_RESOURCE_DEFINITION)
        assert served is not None
        time = Moment(now).time
        before = crd.to_dict()
        before["metadata"]["finalizers"] = [*finalizers]
        status = {**mapping(before.get("status")), "conditions": with_condition(before, "Terminating", state, time)}
        after: dict[str, object] = {**before, "status": status}
        entries = changed_entries(self._registry, served, before, after, None, Writer(OWN_MANAGER, time, "status"))
        self._store.update(CRDS, crd.key, with_entries(after, entries))

    def finish(self, name: str, *, now: float) -> None:
        if self._store.count(name):
            return
        crd = self._store.get(CRDS, name)
        if crd is None or crd.deletion_timestamp is None:
            return
        finalizers = [item for item in crd.finalizers if item != CLEANUP_FINALIZER]
        if not finalizers:
            self._store.delete(CRDS, crd.key)
            self.stop_serving(crd.name, now=now)
        elif len(finalizers) < len(crd.finalizers):
            established = is_established(crd.to_dict())
            self._report(crd, _COMPLETED if established else _NEVER_ESTABLISHED, finalizers, now=now)

    def stop_serving(self, name: str, *, now: float) -> None:
        self._registry.remove_crd(name)
        self._apply(self._store.list(CRDS).items, now=now)

    def _apply(self, crds: Iterable[Resource], *, now: float) -> None:
        for crd in crds:
            fields = crd.to_dict()
            fields["status"] = self._registry.apply_crd(fields, now=now)
            self._store.update(CRDS, crd.key, fields)
        self.follow(now=now)

    def follow(self, *, now: float, uid: str = "") -> None:
        """Create and delete the APIServices of CRDs' group versions, in a draft at the commit."""
        self.changed = now, uid
        if self._drafted:
            return
        served = self._registry.versions_of_crds()
        for (group, version), priority in sorted(served.items() - self._followed.items()):
            service = service_name(group, version)
            if self._store.get(_API_SERVICES, service) is None:
                own = {"uid": uid_beside(uid, f"{service} {self._store.revision}"), "time": Moment(now).time}
                fields = own_service(group, version, priority, managed=WHILE_DEFINED, **own)
                self._store.create(_API_SERVICES, service, fields)
        for group, version in sorted(self._followed.keys() - served.keys()):
            found = self._store.get(_API_SERVICES, service_name(group, version))
            if found is not None and follows_definitions(found):
                self._store.delete(_API_SERVICES, found.key)
        self._followed = served
