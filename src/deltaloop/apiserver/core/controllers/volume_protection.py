"""Lets go of claims, volumes and classes of volume attributes that are being deleted, once nothing uses them.

Each kind knows by what it is used (``strategy.Protection``).

Source: Kubernetes pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
"""

from __future__ import annotations

from deltaloop.api.json_values import mapping
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.core.writes.update import update


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
