"""``fieldValidation``: handling of unknown and duplicate fields.

    Ignore   drop them        Warn (default)   drop them, with a Warning header for each
    Strict   reject: 400 for a complete object, 422 with the field ``patch`` for a patch

Unknown fields of custom resources are dropped later, when the object is pruned.

Source: apiserver pkg/endpoints/handlers/create.go, update.go, patch.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from deltaloop.api.json_values import copied, mapping
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.codec import AsSent
from deltaloop.apiserver.core.metadata.rules import finalizer_warnings, owner_warnings
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.bodies import SentBody
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.write_options import FieldValidation
from deltaloop.apiserver.core.writes.sent_objects import decode_sent
from deltaloop.schemas.decoding import duplicate_field_texts
from deltaloop.schemas.field_errors import invalid_text
from deltaloop.schemas.json_in_parts import decode_in_parts


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


_STRICT: Final = "strict decoding error: "
_OPERATION_FIELDS: Final = frozenset({"op", "path", "from", "value"})
_MOST_SIGNS: Final = 4096
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SIGNS_OF_ONE: Final = 256


def check_object(
    served: ServedResource, fields: dict[str, Any], body: SentBody, mode: FieldValidation
) -> tuple[str, ...]:
    """Return warnings, or in the mode ``STRICT`` raise BadRequestError; drops unknown fields of a built-in kind."""
    # Decoding YAML already detects duplicate keys.
    sent, repeated = (body.raw, ()) if body.repeated is None else (b"", body.repeated)
    found = served.codec.drop_unknown(fields, sent, "whole", told=mode is not FieldValidation.IGNORE)
    if mode is FieldValidation.IGNORE:
        return ()
    if found or repeated:
        _check_readable(served, fields, as_sent="whole")
    if (found or repeated) and mode is FieldValidation.STRICT:
        kind = served.type.kind
        shown = ", ".join((*_unmarshal_errors(repeated), *found))
        raise status_errors.unreadable(kind, f"{_STRICT}{shown}", version=served.type.version)
    return (*repeated, *found)


def _unmarshal_errors(repeated: Sequence[str]) -> tuple[str, ...]:
    return ("\n  ".join(("yaml: unmarshal errors:", *repeated)),) if repeated else ()


def check_patched(
    served: ServedResource, fields: dict[str, Any], patch: bytes, mode: FieldValidation
) -> tuple[str, ...]:
    """Return warnings about an object after a patch, or in the mode ``STRICT`` raise InvalidError for ``patch``."""
    found = _patch_texts(patch, mode)
    if served.codec.is_read(fields):
        told = mode is not FieldValidation.IGNORE
        found = (*found, *served.codec.drop_unknown(fields, b"", "patched", told=told))
    repeated = owner_warnings(mapping(fields.get("metadata")), " after mutating admission happens")
    if found or repeated:
        _check_readable(served, fields, as_sent="patched")
    if found and mode is FieldValidation.STRICT:
        result = msgspec.json.encode(msgspec.json.encode(fields).decode()).decode()
        raise status_errors.invalid_patch(invalid_text("patch", result, _STRICT + ", ".join(found)))
    return (*found, *repeated)


def _check_readable(served: ServedResource, fields: dict[str, Any], *, as_sent: AsSent) -> None:
    """Reject an unreadable object, whose unknown fields are not reported."""
    decode_sent(served, copied(fields), as_sent=as_sent)


def check_applied(repeated: tuple[str, ...], mode: FieldValidation) -> tuple[str, ...]:
    """Return warnings about duplicate keys of an applied object, or in the mode ``STRICT`` raise BadRequestError."""
    if mode is FieldValidation.IGNORE:
        return ()
    if repeated and mode is FieldValidation.STRICT:
        (errors,) = _unmarshal_errors(repeated)
        raise status_errors.bad_request(f"error strict decoding patch: error converting YAML to JSON: {errors}")
    return repeated


def _patch_texts(patch: bytes, mode: FieldValidation) -> tuple[str, ...]:
    """Return messages about duplicate fields of a patch and unknown fields of JSON Patch operations."""
    if mode is FieldValidation.IGNORE:
        return ()
    twice = duplicate_field_texts(patch)
    if not patch.lstrip().startswith(b"["):
        return tuple(twice)
    operations: list[Any] = decode_in_parts(patch)
    unknown = [
        f'unknown field "[{place}].{name}"'
        for place, operation in enumerate(operations)
        for name in operation or ()
        if name not in _OPERATION_FIELDS
    ]
    return tuple(f"json patch {text}" for text in (*twice, *unknown))


def bounded_warnings(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the unique warnings, limited to a size that clients can read in headers."""
    once: dict[str, None] = {}
    shortened = 0
    for text in texts:
        if text and text not in once and not _CONTROL.search(text):
            once[text] = None
            shortened += min(len(text), _SIGNS_OF_ONE)
            if shortened > _MOST_SIGNS:
                break  # later warnings, possibly very many, would be dropped
    if sum(map(len, once)) <= _MOST_SIGNS:
        return tuple(once)
    kept: list[str] = []
    written = 0
    for text in once:
        if written >= _MOST_SIGNS:
            break
        kept.append(text[:_SIGNS_OF_ONE])
        written += len(kept[-1])
    return tuple(kept)


def warning_header(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
