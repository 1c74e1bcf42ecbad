"""``metadata.managedFields`` of what this server serves: which types a resource has, and which fields do not count.

A field that the endpoint resets belongs to nobody there: ``status`` where it is a subresource; on ``/status`` the spec,
and metadata as far as that endpoint leaves it alone.

Source: the ``GetResetFields`` of each kind's strategy in Kubernetes pkg/registry; apiextensions-apiserver
pkg/registry/customresource/strategy.go, status_strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, final

from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import failures
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
from deltaloop.apiserver.core.apply.ownership import ConflictsError, Target, fault_of_entries
from deltaloop.apiserver.core.codec import ConversionError, UndefinedVersionError
from deltaloop.apiserver.core.kinds.scaling import SCALE_VERSION
from deltaloop.apiserver.core.metadata.go_words import merging_words
from deltaloop.apiserver.core.metadata.types import reads_as_entries
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.strategy import CLIENTS_METADATA
from deltaloop.schemas.types import TypeNode

_STATUS: Final = "f:status"
_LEFT_INVALID: Final = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: "
)


def with_created(
    registry: Registry, served: ServedResource, created: dict[str, object], stamp: Stamp
) -> dict[str, object]:
    """Return a new object with its entries; what the server itself has set belongs to nobody."""
    entries = created_entries(_target(registry, served, ""), created, Writer(stamp.manager, stamp.time))
    return with_entries(created, entries)


def with_updated(
    registry: Registry,
    served: ServedResource,
    before: dict[str, object],
    after: dict[str, object],
    sent: object,
    stamp: Stamp,
    *,
    subresource: str = "",
) -> dict[str, object]:
    """Return a changed object with its entries.

    Args:
        registry: Knows the other versions of the resource.
        served: The kind that the request names, as it is served.
        before: The object as it was.
        after: The object as it will be.
        sent: ``managedFields`` of the object that was sent, or None.
        stamp: The time and the manager.
        subresource: What was written to.
    """
    target = _target(registry, served, subresource)
    # The real server loses the time of an entry on its way through a Scale.
    time = "" if subresource == "scale" else stamp.time
    try:
        entries = updated_entries(target, before, after, sent, Writer(stamp.manager, time, subresource))
    except ConversionError:
        entries = entries_of(before)  # as on a real server: the write goes on, and owners stay
    return with_entries(after, entries)


@final
class Entries:
    """The entries of an object before admission: worked out when they are asked for, once."""

    def __init__(self, find: Callable[[], list[dict[str, object]]], applied: list[dict[str, object]] | None) -> None:
        """Work them out so; an object that was applied has them already."""
        self._find = find if applied is None else lambda: applied
        self._found: list[dict[str, object]] | None = None

    def __call__(self) -> list[dict[str, object]]:
        """Return them."""
        if self._found is None:
            self._found = self._find()
        return self._found

    def admitted(self, fields: dict[str, object], stamp: Stamp) -> list[dict[str, object]]:
        """Return the entries that admission has left; those from before, with a warning, if they cannot be read.

        Source: apiserver pkg/endpoints/handlers/fieldmanager/admission.go.
        """
        if self._found is None:
            return self()  # nobody was shown them
        left = entries_of(fields)
        fault = fault_of_entries(left)
        if fault:
            stamp.warn([_LEFT_INVALID + fault])
            return self._found
        return left


def can_be_owned(registry: Registry, served: ServedResource, fields: dict[str, object]) -> bool:
    """Tell whether an object as sent fits its type as far as owners need it; if not, a write changes no owners.

    Most that would not fit is refused for what is written. Here is what is sent beside that, of custom resources (a
    status, or the rest of an object whose status is written), and what their schemas let pass, such as a list where a
    text with a format belongs.

    Source: apimachinery pkg/util/managedfields/fieldmanager.go (``UpdateNoErrors``).
    """
    if not served.schema.source:
        return True
    return not merging_faults(_target(registry, served, "").type, fields, unlike=False)


def with_old_times(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    """Return an applied object with the entries that it had, if their times are all that differs.

    Source: apiserver pkg/endpoints/handlers/fieldmanager/equality.go.
    """
    old, new = (_timeless(entries_of(each)) for each in (before, after))
    if old == new and with_entries(before, []) == with_entries(after, []):
        return with_entries(after, entries_of(before))
    return after


def entries_of(fields: dict[str, object]) -> list[dict[str, object]]:
    """Return the entries of an object."""
    return [mapping(entry) for entry in items(at(fields, "metadata", "managedFields"))]


def _timeless(entries: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries]


def apply_fields(
    registry: Registry,
    served: ServedResource,
    live: dict[str, object] | None,
    applied: dict[str, object],
    stamp: Stamp,
    *,
    force: bool,
    subresource: str = "",
) -> dict[str, object]:
    """Lay an applied object over the present one and return the result with its entries.

    Args:
        registry: Knows the other versions of the resource.
        served: The kind that the request names, as it is served.
        live: The object as it is, None if there is none.
        applied: The object as sent.
        stamp: The time and the manager.
        force: Whether to take fields over from other managers.
        subresource: What is applied to.

    Raises:
        BadRequestError: If it is of another kind or version, or brings entries of its own.
        ConflictError: If others own fields that would change.
        ApiError: 500 if it does not fit its type, as the real server answers.
    """
    target = _target(registry, served, subresource)
    _check_kind(served, applied)
    if reads_as_entries(mapping(applied.get("metadata")).get("managedFields")):
        raise failures.bad_request("metadata.managedFields must be nil")
    wrong = merging_words(merging_faults(target.type, applied))
    if wrong:
        namespace, name = text(at(applied, "metadata", "namespace")), text(at(applied, "metadata", "name"))
        place = f"{namespace}/{name}; {_gvk(served.type.api_version, served.type.kind)}"
        raise failures.unexplained(f"failed to create typed patch object ({place}): {wrong}")
    applied = _without_unreadable(served, applied)
    writer = Writer(stamp.manager, "" if subresource == "scale" else stamp.time, subresource)
    try:
        return applied_object(target, live, applied, writer, force=force)
    except ConflictsError as error:
        raise _conflict(error, shown_as=SCALE_VERSION if subresource == "scale" else "") from None
    except ConversionError as error:
        raise failures.unexplained(str(error)) from None


def _without_unreadable(served: ServedResource, applied: dict[str, object]) -> dict[str, object]:
    """Return an applied object without entries that cannot be read, or refuse them in a built-in kind."""
    if mapping(applied.get("metadata")).get("managedFields") is None:
        return applied
    if not served.codec.says_kind:
        raise failures.not_convertible(served.type, applied, "metadata.managedFields cannot be read")
    return with_entries(applied, [])


def _conflict(error: ConflictsError, *, shown_as: str) -> ApiError:
    """Return the 409; ``shown_as`` is the version that all managers are shown to use, if there is one."""
    conflicts = error.conflicts
    if shown_as:
        conflicts = tuple(replace(each, manager=replace(each.manager, api_version=shown_as)) for each in conflicts)
    return failures.apply_conflict(
        conflict_message(conflicts),
        [(f"conflict with {conflict.manager.shown}", conflict.place) for conflict in conflicts],
    )


def _check_kind(served: ServedResource, applied: dict[str, object]) -> None:
    found = _gvk(text(applied.get("apiVersion")), text(applied.get("kind")))
    wanted = _gvk(served.type.api_version, served.type.kind)
    if found != wanted:
        raise failures.bad_request(f"invalid object type: {found}")


def _gvk(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


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
    """Return the one field that counts on ``/status``, or "" and the fields that do not."""
    if not served.flags.status_metadata:
        return _STATUS, {}
    kept = {field_step(name): LEAF for name in CLIENTS_METADATA - served.flags.status_metadata}
    ignored: FieldSet = {"f:spec": LEAF}
    if kept:
        ignored["f:metadata"] = kept
    return "", {**ignored, **served.strategy.reset_fields.get("status", {})}


def _types_of(registry: Registry, served: ServedResource) -> Callable[[str], TypeNode | None]:
    """Return what finds the type of a resource by any version of it, or of another that has its objects, too."""

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
