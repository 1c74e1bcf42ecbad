"""Which objects go with a namespace, and when the namespace itself goes.

A namespace that is being deleted loses its objects; when none is left, its finalizer ``kubernetes`` is taken away and,
unless something else holds it, so is the namespace.

Source: Kubernetes pkg/controller/namespace/deletion.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, mapping, texts
from deltaloop.apiserver.core.kinds.namespace import NAMESPACE_FINALIZER
from deltaloop.apiserver.core.stamp import Stamps
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.operations import Operations

MOST: Final = 200
_BACKGROUND: Final = DeleteOptions(propagation_policy="Background")
_NAMESPACES: Final = kinds.NAMESPACE.group_resource


def clean_up(operations: Operations, *, stamps: Stamps, most: int = MOST) -> bool:
    """Do what is left to do for every namespace that is being deleted, and tell whether anything was written.

    Args:
        operations: Carries out verbs on the store: create, update, delete and the others.
        stamps: Gives what a write takes from outside: time, uid, chance, and who writes.
        most: Objects that are deleted in each namespace before this returns; call it again as long as it has written.
    """
    before = operations.store.revision
    for namespace in operations.store.being_deleted(_NAMESPACES):
        _empty(operations, namespace.name, stamps=stamps, most=most)
    return operations.store.revision != before


def _empty(operations: Operations, namespace: str, *, stamps: Stamps, most: int) -> None:
    store = operations.store
    left = 0
    # One version of each resource is enough: they share their objects.
    resources = {item.type.group_resource: item for item in operations.registry.resources() if item.type.namespaced}
    for resource, served in sorted(resources.items()):
        for item in store.list(resource, prefix=f"{namespace}/").items:
            if item.deletion_timestamp is None:
                if most <= 0:
                    return
                operations.delete(served, namespace, item.name, _BACKGROUND, stamp=stamps())
                most -= 1
        left += len(store.list(resource, prefix=f"{namespace}/").items)
    if left:
        return
    itself = operations.registry.resource(kinds.NAMESPACE)
    current = store.get(_NAMESPACES, namespace)
    if itself is None or current is None:
        return
    fields = decode_object(itself, current)
    finalizers = [name for name in texts(at(fields, "spec", "finalizers")) if name != NAMESPACE_FINALIZER]
    if len(finalizers) == len(texts(at(fields, "spec", "finalizers"))):
        return
    fields["spec"] = {**mapping(fields["spec"]), "finalizers": finalizers}
    operations.update(itself, "", namespace, fields, stamp=stamps(), subresource="finalize")
