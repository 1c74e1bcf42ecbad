"""What writing and deleting a CustomResourceDefinition does beyond storing it.

    written     it is defaulted and checked; its names are accepted or not, and its resources are served
    deleted     its finalizer holds it until the last of its objects is gone; nothing new can be created meanwhile
    gone        its resources are not served any more, and its names are free for another that waits for them

Source: apiextensions-apiserver pkg/controller/finalizer, pkg/controller/status.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.crds.definition import CLEANUP_FINALIZER, is_established
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.store import Objects
from deltaloop.apiserver.core.strategy import Given
from deltaloop.apiserver.core.writes.managed_fields import with_updated
from deltaloop.schemas.json_values import mapping

_NO_STATUS: Final[dict[str, object]] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}}
_MANAGER: Final = "kube-apiserver"
CRDS: Final = kinds.CUSTOM_RESOURCE_DEFINITION.group_resource


@final
class CrdLifecycle:
    """The custom resource definitions of one store and one registry."""

    def __init__(self, store: Objects, registry: Registry) -> None:
        """Work on this store and this registry."""
        self._store = store
        self._registry = registry

    def serve_stored(self, *, now: float) -> None:
        """Serve the resources of the CRDs in a restored store; those that had their names keep them."""
        crds = sorted(self._store.list(CRDS).items, key=lambda crd: not is_established(crd.to_dict()))
        self._apply(crds, now=now)

    def applied(self, crd: dict[str, object], given: Given) -> dict[str, object]:
        """Serve what a CRD that is about to be stored says; return it with its status, which is the server's own."""
        served = self._registry.resource(kinds.CUSTOM_RESOURCE_DEFINITION)
        assert served is not None
        status = self._registry.apply_crd(crd, now=given.now)
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
