"""The verb ``update``: read an object, admit it, compare it with the current object, and store it if it differs.

Source: apiserver pkg/endpoints/handlers/update.go, pkg/registry/generic/registry/store.go.
"""

from __future__ import annotations

from typing import Any

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.codec import AsSent
from deltaloop.apiserver.core.kinds.scaling import apply_scale, check_scale
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.admitting import admit_change
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.field_validation import read_body
from deltaloop.apiserver.core.writes.objects import has_empty_part, make_changed
from deltaloop.apiserver.core.writes.sent_objects import read_sent
from deltaloop.apiserver.core.writes.storing import store_changed


def update_sent(context: WriteContext) -> tuple[Resource, int]:
    """Store the object or ``Scale`` in the body of a PUT, and return the object with the HTTP status."""
    if context.subresource == "scale":
        assert context.body is not None
        return update_scale(context, context.body.decode()), 200
    fields = read_body(context)
    if context.served.flags.create_on_update and not context.subresource and context.find() is None:
        return create(context, fields), 201
    return update(context, fields), 200


def update(
    context: WriteContext,
    fields: dict[str, Any],
    *,
    as_sent: AsSent = "whole",
    entries: list[dict[str, object]] | None = None,
    pruned: tuple[str, ...] = (),
) -> Resource:
    """Store a changed object if it differs from the current object, or raise ApiError without changing any object."""
    as_sent = "applied" if entries is not None else as_sent
    empty = not context.subresource and has_empty_part(context.served, fields)
    sent = read_sent(context, fields, as_sent)
    current = context.read()
    before = decode_object(context.served, current)
    admitted = admit_change(context, sent, before, entries)
    changed = make_changed(context, current, before, admitted.sent, admitted.entries, empty=empty, pruned=pruned)
    return store_changed(context, current, before, changed, admitted.attributes, applied=as_sent == "applied")


def update_scale(context: WriteContext, scale: dict[str, object], *, as_sent: AsSent = "whole") -> Resource:
    check_scale(scale, patched=as_sent == "patched")
    fields = apply_scale(context.served, decode_object(context.served, context.read()), scale)
    return update(context, fields, as_sent=as_sent)
