"""What writing and deleting a CustomResourceDefinition does beyond storing it.

    written     it is defaulted and checked; its names are accepted or not, and its resources are served
    deleted     its finalizer holds it until the last of its objects is gone; nothing new can be created meanwhile
    gone        its resources are not served any more, and its names are free for another that waits for them

Each version of a group that is served has an APIService meanwhile.

Source: apiextensions-apiserver pkg/controller/finalizer, pkg/controller/status; Kubernetes
pkg/controlplane/controller/crdregistration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.crds.definition import CLEANUP_FINALIZER, is_established
from deltaloop.apiserver.core.kinds.api_service import WHILE_DEFINED, follows_definitions, own_service, service_name
from deltaloop.apiserver.core.kinds.ip_address import uid_beside
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.store import Objects
from deltaloop.apiserver.core.strategy import Given
from deltaloop.apiserver.core.writes.managed_fields import with_updated

_NO_STATUS: Final[dict[str, object]] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}}
_MANAGER: Final = "kube-apiserver"
_API_SERVICES: Final = kinds.API_SERVICE.group_resource
CRDS: Final = kinds.CUSTOM_RESOURCE_DEFINITION.group_resource


@final
class CrdLifecycle:
    """The custom resource definitions of one store and one registry."""

    def __init__(self, store: Objects, registry: Registry, *, drafted: bool = False) -> None:
        """Work on this store and this registry; those of a draft are one write's own."""
        self._store = store
        self._registry = registry
        self._drafted = drafted
        self._followed: dict[tuple[str, str], tuple[int, int]] = {}
        self.changed: tuple[float, str] | None = None  # when what is served has changed last, by which CRD

    def serve_stored(self, *, now: float) -> None:
        """Serve the resources of the CRDs in a restored store; those that had their names keep them."""
        crds = sorted(self._store.list(CRDS).items, key=lambda crd: not is_established(crd.to_dict()))
        self._apply(crds, now=now)

    def applied(self, crd: dict[str, object], given: Given) -> dict[str, object]:
        """Serve what a CRD that is about to be stored says; return it with its status, which is the server's own."""
        served = self._registry.resource(kinds.CUSTOM_RESOURCE_DEFINITION)
        assert served is not None
        status = self._registry.apply_crd(crd, now=given.now)
        self.follow(now=given.now, uid=text(at(crd, "metadata", "uid")))
        # Which versions are stored is written with the CRD itself, the rest later: by the server.
        stored = {**_NO_STATUS, **mapping(crd.get("status")), "storedVersions": status["storedVersions"]}
        before = {**crd, "status": stored}
        own = Stamp(now=given.now, manager=_MANAGER)
        return with_updated(self._registry, served, before, {**crd, "status": status}, None, own, subresource="status")

    def check_open(self, name: str) -> None:
        """Refuse a new custom resource whose CRD, of this name, is being deleted.

        Raises:
            MethodNotAllowedError: If it is.
        """
        crd = self._store.get(CRDS, name)
        if crd is not None and crd.deletion_timestamp is not None:
            raise failures.method_not_allowed(
                "create not allowed while custom resource definition is terminating",
            )

    def resource_of(self, name: str) -> ServedResource | None:
        """Return one of the resources that a CRD serves, by the CRD's name; its objects are those of all versions."""
        return self._registry.resource_of(name)

    def finish(self, name: str, *, now: float) -> None:
        """Let go of a CRD that is being deleted and has no objects any more; otherwise do nothing."""
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
            fields = crd.to_dict()
            fields["metadata"]["finalizers"] = finalizers
            self._store.update(CRDS, crd.key, fields)

    def stop_serving(self, name: str, *, now: float) -> None:
        """Serve a CRD no longer; its names may now be free for another that waits for them."""
        self._registry.remove_crd(name)
        self._apply(self._store.list(CRDS).items, now=now)

    def _apply(self, crds: Iterable[Resource], *, now: float) -> None:
        for crd in crds:
            fields = crd.to_dict()
            fields["status"] = self._registry.apply_crd(fields, now=now)
            self._store.update(CRDS, crd.key, fields)
        self.follow(now=now)

    def follow(self, *, now: float, uid: str = "") -> None:
        """Let there be an APIService for each version that a CRD serves, and for no other; a draft leaves it for later.

        Args:
            now: Seconds since 1970.
            uid: That of the CRD that was written, from which those of new APIServices are made.
        """
        self.changed = now, uid
        if self._drafted:
            return
        served = self._registry.versions_of_crds()
        for (group, version), priority in sorted(served.items() - self._followed.items()):
            service = service_name(group, version)
            if self._store.get(_API_SERVICES, service) is None:
                own = {"uid": uid_beside(uid, f"{service} {self._store.revision}"), "time": Stamp(now=now).time}
                fields = own_service(group, version, priority, managed=WHILE_DEFINED, **own)
                self._store.create(_API_SERVICES, service, fields)
        for group, version in sorted(self._followed.keys() - served.keys()):
            found = self._store.get(_API_SERVICES, service_name(group, version))
            if found is not None and follows_definitions(found):
                self._store.delete(_API_SERVICES, found.key)
        self._followed = served
