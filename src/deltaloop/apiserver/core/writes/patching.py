"""Application of patches by content type.

    application/json-patch+json             RFC 6902, at most 10 000 operations
    application/merge-patch+json            RFC 7386
    application/strategic-merge-patch+json  built-in kinds only (``strategic_merge``)
    application/apply-patch+yaml            server-side apply (``apply``)

An unreadable body is a 400, a patch that does not apply is a 422, and another content type is a 415.

Source: apiserver pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from typing import Final, cast

import msgspec

from deltaloop.api.json_values import copied, is_list, is_mapping, json_type, mapping
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.json_patch import MAX_OPERATIONS, JsonPatchError, apply_operations
from deltaloop.apiserver.core.metadata.types import converting_words, unreadable_type
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.bodies import APPLY_PATCH, JSON_PATCH, media_type_of
from deltaloop.apiserver.core.writes.strategic_merge import StrategicMergeError, strategic_merge
from deltaloop.schemas.converting import convert_object
from deltaloop.schemas.field_errors import invalid_text
from deltaloop.schemas.nesting import MAX_STORED_DEPTH, TooDeepError, check_depth, decode_json

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

_REJECTED: Final = "the server rejected our request due to an error in our request"


def applies(content_type: str) -> bool:
    return media_type_of(content_type) == APPLY_PATCH


def patch_types(resource: ServedResource) -> tuple[str, ...]:
    if not resource.flags.strategic_merge:
        return (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
    return (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)


def apply_patch(
    content_type: str, current: dict[str, object], body: bytes, resource: ServedResource, *, of_kind: bool = True
) -> dict[str, object]:
    """Apply a patch, except for server-side apply, to a copy, or raise ApiError."""
    media_type = media_type_of(content_type)
    accepted = patch_types(resource)
    if media_type not in accepted or media_type == APPLY_PATCH:
        if not resource.flags.strategic_merge:
            raise status_errors.unsupported_media_type(accepted)
        raise status_errors.refused_patch(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    try:
        patch = _read(body)
        if media_type == JSON_PATCH:
            result = _apply_json_patch(current, patch)
            check_depth(result, most=MAX_STORED_DEPTH)
            return _typed(result)
        if patch is None and media_type == MERGE_PATCH:
            raise status_errors.bad_request("Invalid JSON Patch")
        if not isinstance(patch, dict | None):
            raise _not_decodable(patch, "value of type map[string]interface {}")
        changes = cast("dict[str, object]", patch or {})
        if media_type == MERGE_PATCH:
            return _typed(merge_patch(current, changes))
        return _apply_strategic(current, changes, resource, of_kind=of_kind)
    except (RecursionError, TooDeepError):
        raise status_errors.bad_request(f"error decoding patch: {TooDeepError()}") from None


def merge_patch(current: dict[str, object], patch: dict[str, object]) -> dict[str, object]:
    """Apply a JSON merge patch, and return a result that shares no part with the arguments."""
    result: dict[str, object] = copied(current)
    _merge_into(result, patch)
    return result


def _merge_into(target: dict[str, object], patch: dict[str, object]) -> None:
    for name, value in patch.items():
        present = target.get(name)
        if value is None:
            target.pop(name, None)
        elif not is_mapping(present):
            target[name] = _without_nulls(value)
        elif is_mapping(value):
            _merge_into(present, value)
        else:
            target[name] = copied(value)


def _without_nulls(value: object) -> object:
    """Copy a value without the nulls of its objects. Nulls of lists stay."""
    if type(value) is str:
        return value
    if is_mapping(value):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(item) for item in value] if is_list(value) else value


def _typed(result: dict[str, object]) -> dict[str, object]:
    if why := unreadable_type(result):
        raise _not_readable(why)
    return result


def _not_readable(why: str) -> ApiError:
    return status_errors.invalid_patch(invalid_text("patch", "the object that results", why))


def _read(body: bytes) -> object:
    try:
        return decode_json(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        # msgspec's message contains the position and the expected type but not the data.
        raise status_errors.bad_request(f"error decoding patch: {error}") from None


def _not_decodable(value: object, go: str) -> ApiError:
    found = json_type(value)
    return status_errors.bad_request(f"error decoding patch: json: cannot unmarshal {found} into Go {go}")


def _apply_strategic(
    current: dict[str, object], patch: dict[str, object], resource: ServedResource, *, of_kind: bool
) -> dict[str, object]:
    try:
        result: dict[str, object] = copied(strategic_merge(current, patch, resource.schema.tree))
    except StrategicMergeError as error:
        reasons = {400: "BadRequest", 422: "Invalid"}
        raise status_errors.refused_patch(error.code, reasons.get(error.code, ""), str(error)) from None
    if not of_kind:
        return result
    if (fault := convert_object(resource.schema.tree, result)) is not None:
        raise _not_readable(converting_words(fault))
    # The result is read as the kind of the URL, regardless of its own kind.
    return {**result, "kind": resource.type.kind, "apiVersion": resource.type.api_version}


def _apply_json_patch(current: dict[str, object], patch: object) -> dict[str, object]:
    if not isinstance(patch, list | None):
        raise _not_decodable(patch, "value of type []handlers.jsonPatchOp")
    operations = cast("list[object]", patch or [])
    for operation in operations:
        if not isinstance(operation, dict | None):
            raise _not_decodable(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            value = mapping(cast("object", operation)).get(name)
            if not isinstance(value, str | None):
                raise _not_decodable(value, f"struct field jsonPatchOp.{name} of type string")
    if len(operations) > MAX_OPERATIONS:
        raise status_errors.refused_patch(
            413,
            "RequestEntityTooLarge",
            f"Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}",
        )
    try:
        result = apply_operations(copied(current), operations)
    except JsonPatchError:
        raise status_errors.refused_patch(422, "Invalid", _REJECTED) from None
    if not isinstance(result, dict):
        raise status_errors.refused_patch(422, "Invalid", _REJECTED)
    return cast("dict[str, object]", result)
