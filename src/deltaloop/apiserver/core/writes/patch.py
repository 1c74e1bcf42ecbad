"""The verb ``patch``: apply a patch to the current object, then update it.

Source: apiserver pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from collections.abc import Callable

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds.scaling import scale_of
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.field_validation import check_patched, note_advice
from deltaloop.apiserver.core.writes.patching import apply_patch
from deltaloop.apiserver.core.writes.update import update, update_scale


def patch_sent(context: WriteContext) -> tuple[Resource, int]:
    """Apply the patch in the body, and return the object with the HTTP status."""
    served, body = context.served, context.body
    assert body is not None

    def change(current: dict[str, object]) -> dict[str, object]:
        if context.subresource == "scale":
            shown = scale_of(served, current, may_be_unset=True)
            return apply_patch(body.content_type, shown, body.raw, served, of_kind=False)
        result = apply_patch(body.content_type, current, body.raw, served)
        context.notes.sent = check_patched(served, result, body.raw, context.validation)
        note_advice(context, result)
        return result

    return patch(context, change), 200


def patch(context: WriteContext, change: Callable[[dict[str, object]], dict[str, object]]) -> Resource:
    """Change an object by a function of its current state. Raises ApiError like ``update`` and ``change``."""
    fields = change(decode_object(context.served, context.read()))
    if context.subresource == "scale":
        return update_scale(context, fields, as_sent="patched")
    return update(context, fields, as_sent="patched")
