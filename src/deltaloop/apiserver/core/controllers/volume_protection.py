"""Lets go of claims, volumes and classes of volume attributes that are being deleted, once nothing uses them.

Each kind knows by what it is used (``strategy.Protection``).

Source: Kubernetes pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
"""

from __future__ import annotations

from deltaloop.api.json_values import mapping
from deltaloop.apiserver.core.stamp import Stamps
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.writes.operations import Operations


def release(operations: Operations, *, stamps: Stamps) -> bool:
    """Take the finalizer from all that may go, and tell whether anything was written."""
    before = operations.store.revision
    for served in operations.registry.resources():
        protection = served.strategy.protection
        if protection is None:
            continue
        for item in operations.store.being_deleted(served.storage):
            if protection.finalizer in item.finalizers and not protection.in_use(item, operations.store):
                fields = decode_object(served, item)
                left = [name for name in item.finalizers if name != protection.finalizer]
                mapping(fields["metadata"])["finalizers"] = left
                operations.update(served, item.namespace, item.name, fields, stamp=stamps())
    return operations.store.revision != before
