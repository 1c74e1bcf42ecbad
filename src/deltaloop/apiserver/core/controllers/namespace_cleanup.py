"""Deletion of namespaces' contents, and release of protected storage objects (``strategy.Protection``).

Source: Kubernetes pkg/controller/namespace/deletion; Kubernetes
pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, mapping, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds.cluster import NAMESPACE_FINALIZER
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.core.writes.update import update

MOST: Final = 32
_SMALL: Final = 1000  # bytes of an object that count as one small object
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
