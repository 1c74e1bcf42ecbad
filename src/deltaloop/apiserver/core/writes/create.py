"""The verb ``create``: read, admit, complete and store an object.

Source: apiserver pkg/endpoints/handlers/create.go, pkg/registry/generic/registry/store.go.
"""

from __future__ import annotations

from typing import Any

from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.admitting import admit_new
from deltaloop.apiserver.core.writes.field_validation import read_body
from deltaloop.apiserver.core.writes.objects import make_new
from deltaloop.apiserver.core.writes.sent_objects import read_new
from deltaloop.apiserver.core.writes.storing import store_new


def create_sent(context: WriteContext) -> tuple[Resource, int]:
    """Store the object in the body of a POST, and return it with the HTTP status."""
    fields = read_body(context)
    try:
        return create(context, fields), 201
    except ApiError as error:
        # A real server checks for an existing object and for the resource version last.
        if error.status.code in (409, 500):
            context.notes.sent += context.notes.advice
        raise


def create(
    context: WriteContext, fields: dict[str, Any], *, entries: list[dict[str, object]] | None = None
) -> Resource:
    """Store a new object; without ``entries``, the manager owns all fields. After ApiError, no object has changed."""
    applied = entries is not None
    sent = read_new(context, fields, "applied" if applied else "whole")
    admitted = admit_new(context, sent, entries)
    new = make_new(context, admitted.sent, admitted.entries)
    return store_new(context, new, admitted.attributes, applied=applied)
