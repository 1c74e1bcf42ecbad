"""Decoding of sent objects, and comparison with the URL and the current object; messages depend on their origin.

Source: apiserver pkg/endpoints/handlers/create.go, update.go, patch.go; pkg/registry/rest/update.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from deltaloop.api.json_values import at, text
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.codec import AsSent
from deltaloop.apiserver.core.metadata.rules import normalized_metadata
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.status_errors import UnreadableObjectError
from deltaloop.apiserver.core.wire.requests import parse_revision, revision_error
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.schemas.field_errors import SchemaError, invalid_text, invalid_value

_MARKS: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")


class Sent(NamedTuple):
    """Decoded object with its defaults; ``dropped`` has the reasons for dropped metadata fields by name."""

    fields: dict[str, object]
    metadata: dict[str, object]
    as_sent: AsSent
    dropped: Mapping[str, str]
    marks: Mapping[str, object] = MappingProxyType({})


def decode_sent(served: ServedResource, fields: dict[str, object], *, as_sent: AsSent) -> Mapping[str, str]:
    """Decode an object in place and set defaults; return the reasons for dropped metadata fields, or raise ApiError."""
    try:
        served.codec.check_kind(fields)
        dropped = served.codec.read(fields, as_sent)
    except UnreadableObjectError as error:
        if as_sent == "patched":
            raise status_errors.invalid_patch(invalid_text("patch", "the object that results", error.why)) from None
        raise
    served.strategy.default(fields)
    return dropped


def read_sent(context: WriteContext, fields: dict[str, object], as_sent: AsSent) -> Sent:
    """Decode an object, or raise ApiError if it is unreadable or does not match the URL."""
    dropped = decode_sent(context.served, fields, as_sent=as_sent)
    metadata = check_identity(
        context.served, fields, namespace=context.namespace, name=context.name, patched=as_sent == "patched"
    )
    return Sent(fields, metadata, as_sent, dropped)


def read_new(context: WriteContext, fields: dict[str, object], as_sent: AsSent) -> Sent:
    """Decode a new object, which keeps its deletion marks if an update or apply creates it, or raise ApiError."""
    sent = read_sent(context, fields, as_sent)
    if not context.name:
        return sent
    metadata = sent.metadata
    if "uid" in metadata and as_sent == "whole":
        name, uid = text(metadata.get("name")), text(metadata["uid"])
        raise _uid_conflict(context.served, context.namespace, name, wanted=uid, found="")
    _version_sent(metadata)
    return sent._replace(marks={name: metadata[name] for name in _MARKS if metadata.get(name) is not None})


def check_identity(
    served: ServedResource, fields: dict[str, object], *, namespace: str, name: str = "", patched: bool = False
) -> dict[str, object]:
    """Check that an object matches the URL, and return its normalized metadata; ``patched`` skips the API version."""
    api_version = fields.get("apiVersion") or ""
    if not patched and (api_version or served.codec.says_kind) and api_version != served.type.api_version:
        raise status_errors.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({served.type.api_version})"
        )
    if not name:
        check_said_kind(served, fields)
    unnamed = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
    if patched and name and not (served.codec.says_kind or api_version):
        raise status_errors.bad_request(unnamed)  # without a version, it is decoded as an empty object
    metadata = normalized_metadata(fields)
    check_namespace(served, metadata, namespace)
    if name and "name" not in metadata:
        raise status_errors.bad_request(unnamed)
    if name and metadata["name"] != name:
        raise status_errors.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
    if patched and served.codec.says_kind and not api_version:
        raise status_errors.internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    return metadata


def check_namespace(served: ServedResource, metadata: dict[str, object], namespace: str) -> None:
    """Set a missing namespace, or remove it for a cluster-scoped resource; raises BadRequestError if it differs."""
    if not served.type.namespaced:
        metadata.pop("namespace", None)
    elif metadata.setdefault("namespace", namespace) != namespace:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_said_kind(served: ServedResource, fields: dict[str, object]) -> None:
    """Raise InvalidError for another kind of custom resource. An update checks the resource version first."""
    if not served.codec.says_kind:
        return
    kind, api_version = text(fields.get("kind")), text(fields.get("apiVersion"))
    errors: list[SchemaError] = []
    if kind and kind != served.type.kind:
        errors.append(invalid_value("kind", kind, f"must be {served.type.kind}"))
    if api_version != served.type.api_version:
        errors.append(invalid_value("apiVersion", api_version, f"must be {served.type.api_version}"))
    if errors:
        group = api_version.rpartition("/")[0]
        raise status_errors.another_kind(group, kind, str(at(fields, "metadata", "name") or ""), errors)


def _version_sent(metadata: dict[str, object]) -> int:
    """Return the resource version of an update, 0 if it is empty, or raise ApiError 500, like the real server."""
    wanted = text(metadata.get("resourceVersion"))
    number = parse_revision(wanted)
    if number is None:
        raise status_errors.unexplained(revision_error(wanted))
    return number


def _uid_conflict(served: ServedResource, namespace: str, name: str, *, wanted: str, found: str) -> ApiError:
    """409: an update of an object that does not exist."""
    key = f"/registry/{served.etcd_prefix}/{served.key(namespace, name)}"
    return status_errors.precondition_conflict(
        served.type, name, storage_key=key, field="UID", wanted=wanted, found=found
    )


def check_versions(
    served: ServedResource, current: Resource, metadata: dict[str, object], *, as_sent: AsSent
) -> list[SchemaError]:
    """Compare UID and resource version of an update with the current object; return errors to report with others."""
    uid = text(metadata.get("uid"))
    another = bool(uid) and uid != current.uid
    if another and as_sent == "whole":
        raise _uid_conflict(served, current.namespace, current.name, wanted=uid, found=current.uid)
    wanted = text(metadata.get("resourceVersion"))
    number = _version_sent(metadata)
    if number == 0 and not served.flags.unconditional_update:
        error = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise status_errors.unversioned_update(served.type, current.name, error)
    if number and wanted != current.resource_version:
        raise status_errors.conflict(served.type, current.name)
    return [invalid_value("metadata.uid", uid, "field is immutable")] if another else []
