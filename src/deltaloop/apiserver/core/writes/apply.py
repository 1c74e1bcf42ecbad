"""The verb ``apply``: create what is missing, merge into what is there, write only what changed.

Source: apiserver pkg/endpoints/handlers/patch.go (``applyPatcher``).
"""

from __future__ import annotations

from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.apply.options import read_applied
from deltaloop.apiserver.core.kinds.scaling import scale_config
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.field_validation import check_applied
from deltaloop.apiserver.core.writes.managed_fields import apply_fields
from deltaloop.apiserver.core.writes.objects import writer_of
from deltaloop.apiserver.core.writes.sent_bodies import note_advice
from deltaloop.apiserver.core.writes.sent_objects import decode_sent
from deltaloop.apiserver.core.writes.update import update
from deltaloop.schemas.pruning import unknown_fields


def apply_sent(context: WriteContext) -> tuple[Resource, int]:
    """Apply the object in the body, and return the result with the HTTP status."""
    assert context.body is not None
    applied, repeated = read_applied(context.body.raw)
    note_advice(context, applied)
    context.notes.advice = check_applied(repeated, context.validation) + context.notes.advice
    return apply(context, applied)


def apply(context: WriteContext, applied: dict[str, object]) -> tuple[Resource, int]:
    """Apply an object, or a ``Scale`` to the subresource, and return the result with the HTTP status.

    Raises:
        ApiError: If the object cannot be applied; nothing has changed then.
    """
    served, current = context.served, context.find()
    if current is None and context.subresource:
        raise status_errors.not_found(served.type, context.name)
    if context.subresource == "scale" and current is not None:
        applied = scale_config(served, current.name, current.namespace, applied)
    live = decode_object(served, current) if current is not None else None
    merged = apply_fields(context.registry, served, live, applied, writer_of(context), force=context.force)
    pruned = unknown_fields(served.schema.tree, merged) if served.schema.source and live is not None else ()
    metadata = mapping(merged["metadata"])
    entries = [mapping(entry) for entry in items(metadata.pop("managedFields", None))]
    if live is None:
        _check_new(served, context.name, text(at(applied, "metadata", "uid")), merged)
        return create(context, merged, entries=entries), 201
    sent = mapping(applied.get("metadata"))
    for field in ("uid", "resourceVersion"):
        # Only what was sent is a condition; what was merged from the present object says nothing.
        if field in sent:
            metadata[field] = sent[field]
    return update(context, merged, entries=entries, pruned=tuple(pruned)), 200


def _check_new(served: ServedResource, name: str, uid: str, merged: dict[str, object]) -> None:
    """Reject the creation of an object that was meant for one that does not exist."""
    if uid:
        decode_sent(served, merged, as_sent="applied")
        reason = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status_errors.conflict(served.type, name, reason)
