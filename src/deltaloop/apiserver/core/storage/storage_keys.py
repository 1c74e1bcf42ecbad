"""The keys of objects in the store, and what etcd calls them where a message of the real server shows it."""

from __future__ import annotations

from deltaloop.api.keys import join_key
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.served_resource import ServedResource


def key_of(served: ServedResource, namespace: str, name: str) -> str:
    """Return the key of an object in the store."""
    return join_key(namespace if served.type.namespaced else "", name)


def prefix_of(served: ServedResource, namespace: str) -> str:
    """Return the beginning of the keys of a namespace; empty for all of them."""
    return f"{namespace}/" if served.type.namespaced and namespace else ""


def uid_conflict(served: ServedResource, namespace: str, name: str, *, wanted: str, found: str) -> ApiError:
    """409: an update names an object that is not there any more, or never was."""
    return precondition_conflict(served, namespace, name, field="UID", wanted=wanted, found=found)


def precondition_conflict(
    served: ServedResource, namespace: str, name: str, *, field: str, wanted: str, found: str
) -> ApiError:
    """409: a write is about another object of that name, or another version of it."""
    kind = served.type
    key = f"/registry/{served.etcd_prefix}/{key_of(served, namespace, name)}"
    return failures.precondition_conflict(kind, name, storage_key=key, field=field, wanted=wanted, found=found)
