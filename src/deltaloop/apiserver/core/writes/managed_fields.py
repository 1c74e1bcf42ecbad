"""Managed fields of served resources: types and ignored fields.

Fields that an endpoint resets have no owner there: ``status`` if it is a subresource, and on ``/status`` the spec and
the metadata that the endpoint does not change.

Source: the ``GetResetFields`` of each kind's strategy in Kubernetes pkg/registry; apiextensions-apiserver
pkg/registry/customresource/strategy.go, status_strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.apply.checking import merging_faults
from deltaloop.apiserver.core.apply.field_manager import (
    Writer,
    applied_object,
    conflict_message,
    created_entries,
    updated_entries,
    with_entries,
)
from deltaloop.apiserver.core.apply.field_set import LEAF, FieldSet, field_step
from deltaloop.apiserver.core.apply.ownership import ConflictsError, Target
from deltaloop.apiserver.core.codec import ConversionError, UndefinedVersionError
from deltaloop.apiserver.core.kinds.scaling import SCALE_VERSION
from deltaloop.apiserver.core.metadata.types import merging_words, reads_as_entries
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.strategy import CLIENTS_METADATA
from deltaloop.schemas.types import TypeNode

_STATUS: Final = "f:status"


def new_entries(
    registry: Registry, served: ServedResource, created: dict[str, object], writer: Writer
) -> list[dict[str, object]]:
    """Return the entries of a new object. Fields that the server sets have no owner."""
    return created_entries(_target(registry, served, ""), created, writer)


def changed_entries(
    registry: Registry,
    served: ServedResource,
    before: dict[str, object],
    after: dict[str, object],
    sent: object,
    writer: Writer,
) -> list[dict[str, object]]:
    """Return the entries of a changed object; ``sent`` are the sent ``managedFields``, or None."""
    try:
        return updated_entries(_target(registry, served, writer.subresource), before, after, sent, writer)
    except ConversionError:
        return entries_of(before)  # like on a real server, the write succeeds with unchanged owners


def can_be_owned(registry: Registry, served: ServedResource, fields: dict[str, object]) -> bool:
    """Return whether a sent object matches its type as far as ownership requires; otherwise owners do not change."""
    if not served.schema.source:
        return True
    return not merging_faults(_target(registry, served, "").type, fields, unlike=False)


def with_old_times(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    """Return an applied object with its old entries if only their times differ (fieldmanager/equality.go)."""
    old, new = (_timeless(entries_of(each)) for each in (before, after))
    if old == new and with_entries(before, []) == with_entries(after, []):
        return with_entries(after, entries_of(before))
    return after


def entries_of(fields: dict[str, object]) -> list[dict[str, object]]:
    return [mapping(entry) for entry in items(at(fields, "metadata", "managedFields"))]


def _timeless(entries: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries]


def apply_fields(
    registry: Registry,
    served: ServedResource,
    live: dict[str, object] | None,
    applied: dict[str, object],
    writer: Writer,
    *,
    force: bool,
) -> dict[str, object]:
    """Merge an applied object into the live object (None for a create)."""
    target = _target(registry, served, writer.subresource)
    _check_kind(served, applied)
    if reads_as_entries(mapping(applied.get("metadata")).get("managedFields")):
        raise status_errors.bad_request("metadata.managedFields must be nil")
    wrong = merging_words(merging_faults(target.type, applied))
    if wrong:
        namespace, name = text(at(applied, "metadata", "namespace")), text(at(applied, "metadata", "name"))
        place = f"{namespace}/{name}; {status_errors.shown_kind(served.type.api_version, served.type.kind)}"
        raise status_errors.unexplained(f"failed to create typed patch object ({place}): {wrong}")
    applied = _without_unreadable(served, applied)
    try:
        return applied_object(target, live, applied, writer, force=force)
    except ConflictsError as error:
        raise _conflict(error, shown_as=SCALE_VERSION if writer.subresource == "scale" else "") from None
    except ConversionError as error:
        raise status_errors.unexplained(str(error)) from None


def _without_unreadable(served: ServedResource, applied: dict[str, object]) -> dict[str, object]:
    """Drop unreadable entries of an applied object, or reject them for a built-in kind."""
    if mapping(applied.get("metadata")).get("managedFields") is None:
        return applied
    if not served.codec.says_kind:
        raise status_errors.not_convertible(served.type, applied, "metadata.managedFields cannot be read")
    return with_entries(applied, [])


def _conflict(error: ConflictsError, *, shown_as: str) -> ApiError:
    """Return the 409 error. ``shown_as`` is an API version to show for all managers, if not empty."""
    conflicts = error.conflicts
    if shown_as:
        conflicts = tuple(
            replace(each, manager=msgspec.structs.replace(each.manager, api_version=shown_as)) for each in conflicts
        )
    return status_errors.apply_conflict(
        conflict_message(conflicts),
        [(f"conflict with {conflict.manager.shown}", conflict.place) for conflict in conflicts],
    )


def _check_kind(served: ServedResource, applied: dict[str, object]) -> None:
    found = status_errors.shown_kind(text(applied.get("apiVersion")), text(applied.get("kind")))
    wanted = status_errors.shown_kind(served.type.api_version, served.type.kind)
    if found != wanted:
        raise status_errors.bad_request(f"invalid object type: {found}")


def _target(registry: Registry, served: ServedResource, subresource: str) -> Target:
    ignored: FieldSet = {}
    only = ""
    if subresource == "status":
        only, ignored = _reset_by_status(served)
    elif subresource and subresource in served.strategy.reset_fields:
        ignored = served.strategy.reset_fields[subresource]
    elif served.status:
        ignored = {_STATUS: {}, **served.strategy.reset_fields.get("", {})}
    types, convert = _types_of(registry, served), served.codec.in_version
    return Target(served.type.api_version, types, ignored=ignored, only=only, in_version=convert)


def _reset_by_status(served: ServedResource) -> tuple[str, FieldSet]:
    """Return the only written field of ``/status``, or an empty string and the ignored fields."""
    if not served.flags.status_metadata:
        return _STATUS, {}
    kept = {field_step(name): LEAF for name in CLIENTS_METADATA - served.flags.status_metadata}
    ignored: FieldSet = {"f:spec": LEAF}
    if kept:
        ignored["f:metadata"] = kept
    return "", {**ignored, **served.strategy.reset_fields.get("status", {})}


def _types_of(registry: Registry, served: ServedResource) -> Callable[[str], TypeNode | None]:
    """Return a function that finds the type of any version of a resource, including those with shared storage."""

    def type_of(api_version: str) -> TypeNode | None:
        if api_version == served.type.api_version:
            return served.schema.tree
        if served.versions is not None:
            schema = served.versions.get(api_version)
            if schema is None:
                raise UndefinedVersionError(api_version)
            return schema.tree
        group, _, version = api_version.rpartition("/")
        other = registry.find_kind(group, version, served.type.kind)
        return other.schema.tree if other is not None and other.storage == served.storage else None

    return type_of
