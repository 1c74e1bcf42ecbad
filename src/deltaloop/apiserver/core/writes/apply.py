"""The verb ``apply``: create or merge an object, and store it if it changed.

Source: apiserver pkg/endpoints/handlers/patch.go (``applyPatcher``).
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, items, json_type, mapping, text
from deltaloop.api.json_writing import is_other_yaml
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.crds.codec import settle_numbers
from deltaloop.apiserver.core.kinds.scaling import scale_config
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.field_validation import check_applied, note_advice
from deltaloop.apiserver.core.writes.managed_fields import apply_fields
from deltaloop.apiserver.core.writes.objects import writer_of
from deltaloop.apiserver.core.writes.sent_objects import decode_sent
from deltaloop.apiserver.core.writes.update import update
from deltaloop.schemas.completing import unknown_fields
from deltaloop.schemas.decoding import duplicate_field_texts
from deltaloop.schemas.nesting import TooDeepError, decode_json


def read_applied(body: bytes) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parse an applied object from YAML, with a message for each duplicate key, or raise BadRequestError.

    JSON is parsed directly if it has the same meaning as YAML, because that is six times as fast.
    """
    repeated: list[str] = []
    try:
        value = decode_json(body)
        if is_other_yaml(body) or duplicate_field_texts(body):
            value = _read_yaml(body, repeated)
    except TooDeepError as error:
        raise status_errors.bad_request(f"error decoding patch: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _read_yaml(body, repeated)
    if value is None:
        return {}, ()
    if not isinstance(value, dict):
        raise status_errors.bad_request(
            f"error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{json_type(value)} into Go value of type map[string]interface {{}}"
        )
    fields = cast("dict[str, Any]", value)
    settle_numbers(fields)
    return fields, tuple(repeated)


def _read_yaml(body: bytes, repeated: list[str]) -> object:
    from deltaloop.api.yaml_reader import read_yaml_body

    try:
        # Convert through JSON, so that values that JSON cannot represent are rejected.
        return decode_json(
            msgspec.json.encode(read_yaml_body(body, source="the body of the request", repeated=repeated))
        )
    except (InvalidArgumentError, UnicodeDecodeError, TypeError, msgspec.MsgspecError) as error:
        raise status_errors.bad_request(f"error decoding patch: error converting YAML to JSON: {error}") from None
    except RecursionError:
        raise status_errors.bad_request(f"error decoding patch: {TooDeepError()}") from None


def apply_sent(context: WriteContext) -> tuple[Resource, int]:
    """Apply the object in the body, and return the result with the HTTP status."""
    assert context.body is not None
    applied, repeated = read_applied(context.body.raw)
    note_advice(context, applied)
    context.notes.advice = check_applied(repeated, context.validation) + context.notes.advice
    return apply(context, applied)


def apply(context: WriteContext, applied: dict[str, object]) -> tuple[Resource, int]:
    """Apply an object or ``Scale``, and return it with the HTTP status. After ApiError, no object has changed."""
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
        # Only sent values are preconditions, but not values that were merged from the current object.
        if field in sent:
            metadata[field] = sent[field]
    return update(context, merged, entries=entries, pruned=tuple(pruned)), 200


def _check_new(served: ServedResource, name: str, uid: str, merged: dict[str, object]) -> None:
    """Reject an object with a UID if it does not exist."""
    if uid:
        decode_sent(served, merged, as_sent="applied")
        reason = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status_errors.conflict(served.type, name, reason)
