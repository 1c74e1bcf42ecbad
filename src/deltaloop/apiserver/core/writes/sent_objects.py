"""An object as somebody sent it: read as its kind, and held against the one that is there.

How it came about decides in which words it is refused: as a ``whole``, ``patched`` (from the present object), or
``applied``.

Source: apiserver pkg/endpoints/handlers/create.go, update.go, patch.go; pkg/registry/rest/update.go.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.builtin.decoding import decode_builtin
from deltaloop.apiserver.core.builtin.defaulting import complete_object
from deltaloop.apiserver.core.failures import UnreadableObjectError
from deltaloop.apiserver.core.metadata.types import check_metadata_types, drop_unreadable
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import encode_json
from deltaloop.apiserver.core.storage.storage_keys import uid_conflict
from deltaloop.apiserver.core.wire.requests import parse_revision, revision_error
from deltaloop.apiserver.core.writes.merged_objects import convert_merged
from deltaloop.apiserver.core.writes.objects import check_kind
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import mapping

Fields = dict[str, Any]
AsSent: TypeAlias = Literal["whole", "patched", "applied"]


def decode_sent(served: ServedResource, fields: Fields, *, as_sent: AsSent) -> None:
    """Read an object as its kind and fill in its defaults, in place.

    Raises:
        ApiError: If it cannot be read; which one depends on how it came about.
    """
    try:
        check_kind(served, fields)
        if as_sent == "applied":
            _convert(served, fields)
        if served.custom:
            check_metadata_types(served, fields)
            return
        if as_sent == "patched" and not fields.get("apiVersion"):
            return  # what a patch left without a version is read as nothing, and refused for that
        decode_builtin(served, fields)
    except UnreadableObjectError as error:
        if as_sent == "patched":
            raise failures.invalid_patch(invalid_value("patch", "the object that results", error.why)) from None
        if as_sent == "applied" and not served.custom:
            raise failures.not_convertible(served.type, fields, error.why) from None
        raise
    complete_object(served.type.api_version, served.type.kind, fields)
    served.strategy.default(fields)


def _convert(served: ServedResource, fields: Fields) -> None:
    """Read what was applied: of custom resources, what is wrong in metadata and not the client's to set is dropped."""
    if served.custom:
        drop_unreadable(mapping(fields.get("metadata")))
    elif why := convert_merged(served, fields):
        raise failures.not_convertible(served.type, fields, why)


def check_version_sent(metadata: Fields) -> int:
    """Return the resource version that an update was sent with as a number, 0 for none.

    Raises:
        ApiError: 500 if it is no number, as the real server answers.
    """
    wanted = metadata.get("resourceVersion", "")
    number = parse_revision(wanted)
    if number is None:
        raise failures.unexplained(revision_error(wanted))
    return number


def check_versions(served: ServedResource, current: Resource, metadata: Fields, *, as_sent: AsSent) -> list[FieldError]:
    """Hold what an update says of uid and resource version against the present object.

    Args:
        served: The resource.
        current: The present object.
        metadata: Of the object as sent, normalized.
        as_sent: How it came about.

    Returns:
        What is wrong, to be told with whatever else may be.

    Raises:
        ConflictError: If it is about another object or another version.
        InvalidError: If the kind must not be updated without a version.
        ApiError: 500 if the version is no number, as the real server answers.
    """
    uid = metadata.get("uid", "")
    another = bool(uid) and uid != current.uid
    if another and as_sent == "whole":
        raise uid_conflict(served, current.namespace, current.name, wanted=uid, found=current.uid)
    wanted = metadata.get("resourceVersion", "")
    number = check_version_sent(metadata)
    if number == 0 and not served.flags.unconditional_update:
        error = invalid_value("metadata.resourceVersion", "0", "must be specified for an update")
        raise failures.unversioned_update(served.type, current.name, error)
    if number and wanted != current.resource_version:
        raise failures.conflict(served.type, current.name)
    return [invalid_value("metadata.uid", encode_json(uid).decode(), "field is immutable")] if another else []
