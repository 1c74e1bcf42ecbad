"""Decoding of request bodies, with checks for unknown and duplicate fields.

Source: apiserver pkg/endpoints/handlers/create.go, update.go.
"""

from __future__ import annotations

from deltaloop.api.json_values import mapping
from deltaloop.apiserver.core.metadata.rules import finalizer_warnings, owner_warnings
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.field_validation import check_object


def read_body(context: WriteContext) -> dict[str, object]:
    """Return the object in the body of a create or update, and record warnings; raises ApiError."""
    served, body, notes = context.served, context.body, context.notes
    assert body is not None
    fields = body.decode()
    served.codec.check_kind(fields)
    if served.codec.is_read(fields):  # otherwise it is rejected later, and its fields have no meaning
        warnings = check_object(served, fields, body, context.validation)
        notes.sent = warnings + owner_warnings(mapping(fields.get("metadata")))
        note_advice(context, fields)
    return fields


def note_advice(context: WriteContext, fields: dict[str, object]) -> None:
    """Record warnings about the names of new finalizers."""
    sent = mapping(fields.get("metadata"))
    if sent.get("finalizers") and context.subresource != "status":
        current = context.find()
        present = current.finalizers if current is not None else ()
        context.notes.advice = finalizer_warnings(context.served, sent, present)
