"""Which objects go with a namespace, and when the namespace itself goes.

A namespace that is being deleted loses its objects; when none is left, its finalizer ``kubernetes`` is taken away and,
unless something else holds it, so is the namespace.

Lets go of claims, volumes and classes of volume attributes that are being deleted, once nothing uses them.

Each kind knows by what it is used (``strategy.Protection``).

Source: Kubernetes pkg/controller/namespace/deletion; Kubernetes
pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, mapping, texts
from deltaloop.apiserver.core.kinds.namespace import NAMESPACE_FINALIZER
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.core.writes.update import update

MOST: Final = 200
_BACKGROUND: Final = DeleteOptions(propagation_policy="Background")
_NAMESPACES: Final = kinds.NAMESPACE.group_resource


def clean_up(state: ServerState, *, moments: Moments, most: int = MOST) -> bool:
    """Do what is left to do for every namespace that is being deleted, and tell whether anything was written.

    Args:
        state: State of the server.
        moments: Draws the values of a write.
        most: Objects that are deleted in each namespace before this returns; call it again as long as it has written.
    """
    before = state.store.revision
    for namespace in state.store.being_deleted(_NAMESPACES):
        _empty(state, namespace.name, moments=moments, most=most)
    return state.store.revision != before


def _empty(state: ServerState, namespace: str, *, moments: Moments, most: int) -> None:
    store = state.store
    left = 0
    # One version of each resource is enough: they share their objects.
    resources = {item.type.group_resource: item for item in state.registry.resources() if item.type.namespaced}
    for resource, served in sorted(resources.items()):
        for item in store.list(resource, prefix=f"{namespace}/").items:
            if item.deletion_timestamp is None:
                if most <= 0:
                    return
                delete(state.own_write(served, namespace, item.name, moments()), _BACKGROUND)
                most -= 1
        left += len(store.list(resource, prefix=f"{namespace}/").items)
    if left:
        return
    itself = state.registry.resource(kinds.NAMESPACE)
    current = store.get(_NAMESPACES, namespace)
    if itself is None or current is None:
        return
    fields = decode_object(itself, current)
    finalizers = [name for name in texts(at(fields, "spec", "finalizers")) if name != NAMESPACE_FINALIZER]
    if len(finalizers) == len(texts(at(fields, "spec", "finalizers"))):
        return
    fields["spec"] = {**mapping(fields["spec"]), "finalizers": finalizers}
    update(state.own_write(itself, "", namespace, moments(), subresource="finalize"), fields)


def release(state: ServerState, *, moments: Moments) -> bool:
    """Take the finalizer from all that may go, and tell whether anything was written."""
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
