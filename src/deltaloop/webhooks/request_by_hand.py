"""Admission requests for unit tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from deltaloop.api.resource import Resource, untyped
from deltaloop.api.resource_type import Kind, as_kind
from deltaloop.cache.lister import Lister
from deltaloop.cache.store import Indexer
from deltaloop.client.core.object_encoding import encode_object
from deltaloop.webhooks.core.admission_review import RequestUser, ReviewedKind, ReviewedRequest, ReviewOperation
from deltaloop.webhooks.declaring import known_kind
from deltaloop.webhooks.request import AdmissionRequest, no_listers

T = TypeVar("T")


def admission_request(
    operation: ReviewOperation = "CREATE",
    *,
    old: T | None = None,
    user: str = "",
    groups: Iterable[str] = (),
    dry_run: bool = False,
    name: str = "",
    namespace: str = "",
    subresource: str = "",
    reads: Mapping[Kind, Iterable[object]] | None = None,
) -> AdmissionRequest[T]:
    """Create a request without an API server, for unit tests of webhook functions.

    Args:
        operation: Operation of the request.
        old: Stored object.
        user: Name of the user who sends the request.
        groups: Groups of the user.
        dry_run: Whether the server will discard the result.
        name: Name of the object.
        namespace: Namespace of the object.
        subresource: Subresource, for example ``status``.
        reads: Cached objects by kind, as mappings, resources or typed objects.
    """
    request = ReviewedRequest(
        uid="by-hand",
        kind=ReviewedKind(),
        operation=operation,
        user_info=RequestUser(username=user, groups=tuple(groups)),
        dry_run=dry_run,
        name=name,
        namespace=namespace,
        sub_resource=subresource,
    )
    listers = {str(as_kind(each)): _lister(each, objects) for each, objects in (reads or {}).items()}

    def lister(kind: Kind) -> Lister[Any]:
        found = listers.get(str(as_kind(kind)))
        return no_listers(kind) if found is None else found

    return AdmissionRequest("by-hand.example.com", request, old=lambda: old, listers=lister)


def _lister(kind: Kind, objects: Iterable[object]) -> Lister[Any]:
    known = known_kind("by-hand", kind)
    indexer = Indexer[Resource](name=str(known))
    for each in objects:
        indexer.add(Resource.from_json(encode_object(known, each).body, untyped(known)))
    return Lister(indexer, known)
