"""Last step of a write: validating admission, store, and side effects on other objects.

Source: apiserver pkg/registry/generic/registry/store.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from deltaloop.api.json_values import mapping
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access.rbac import check_allowed
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.apply.field_manager import with_entries
from deltaloop.apiserver.core.storage.store import OversizedError, encode_object
from deltaloop.apiserver.core.storage.stored_size import MAX_REQUEST, MAX_STORE, protobuf_size, request_size
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.admitting import shown
from deltaloop.apiserver.core.writes.objects import Changed, New, ends_with_update

_STORED_AS_JSON: Final = ("apiextensions.k8s.io", "apiregistration.k8s.io")
Fields = dict[str, object]


def store_new(context: WriteContext, new: New, attributes: AdmissionAttributes, *, applied: bool) -> Resource:
    """Store a new object. Raises ApiError if admission rejects it, it exists already, or it is too large."""
    served, request, name = context.served, context.request, new.name
    if context.name and request is not None:  # an update or apply that creates needs this permission as well
        context.ask(partial(check_allowed, context.authorizer, msgspec.structs.replace(request, verb="create")))
    after: Fields = {"kind": served.type.kind, "apiVersion": served.type.api_version, **new.fields}
    effects = context.admission.validate(msgspec.structs.replace(attributes, after=after, name=name))
    # A resource version that is not a number is ignored like other server-side fields.
    if new.is_versioned and not context.dry_run and not context.name:
        raise status_errors.unexplained("resourceVersion should not be set on objects to be created")
    if new.existing is not None:
        deleted = new.existing.deletion_timestamp is not None
        raise status_errors.already_exists(served.type, name, being_deleted=deleted, generated=new.is_generated)
    if context.dry_run:
        return unstored(context, new.fields, new.version)
    created = served.strategy.store(None, new.fields, context.writes, context.moment)
    stored = _store(context, created, partial(context.objects.create, served.storage, new.key), applied=applied)
    for effect in effects:
        effect(context.writes)
    return stored


def store_changed(
    context: WriteContext,
    current: Resource,
    before: Fields,
    changed: Changed,
    attributes: AdmissionAttributes,
    *,
    applied: bool,
) -> Resource:
    """Store a changed object, or remove it if its last holder was removed; raises ApiError."""
    served, after = context.served, changed.fields
    metadata = {**mapping(after["metadata"]), "resourceVersion": current.resource_version}
    effects = context.admission.validate(
        msgspec.structs.replace(attributes, after=shown(context, {**after, "metadata": metadata}))
    )
    ends = ends_with_update(served, after)
    if ends and not context.dry_run:
        remove(context, current)
    if ends or context.dry_run:
        return unstored(context, after, current.resource_version)
    after = served.strategy.store(before, after, context.writes, context.moment)
    write = partial(context.objects.update, served.storage, current.key, always=changed.differs)
    stored = _store(context, after, write, applied=applied)
    for effect in effects:
        effect(context.writes)
    return stored


def remove(context: WriteContext, current: Resource) -> int:
    """Remove an object and run the side effects; return the revision of its removal."""
    context.objects.delete(context.served.storage, current.key)
    removed_at = context.objects.revision
    context.served.strategy.removed(context.served.storage, current, context.writes, context.moment.now)
    return removed_at


def unstored(context: WriteContext, fields: Fields, resource_version: str) -> Resource:
    return Resource.from_json(encode_object(context.served.codec.stored(fields), resource_version=resource_version))


def _store(context: WriteContext, fields: Fields, write: Callable[..., Resource], *, applied: bool) -> Resource:
    """Store an object; if it is too large, first drop ``managedFields`` unless it was applied, then raise ApiError 500.

    Source: apiserver pkg/endpoints/handlers/create.go, update.go, patch.go (``isTooLargeError``).
    """
    served = context.served
    stored, size = served.codec.stored(fields), 0
    if context.objects.size > MAX_STORE:
        raise status_errors.store_full()
    try:
        return write(stored)
    except OversizedError as error:
        size = error.size
    for candidate in (stored,) if applied else (stored, with_entries(stored, [])):
        if served.flags.protobuf and served.type.group not in _STORED_AS_JSON:
            size = request_size(protobuf_size(served.schema.tree, candidate))
        elif candidate is not stored:
            size = request_size(len(encode_object(candidate, resource_version="")))
        if size <= MAX_REQUEST:
            return write(candidate, any_size=True)
    raise status_errors.too_large_to_store(size)
