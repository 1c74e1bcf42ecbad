"""Updates of ``metadata.managedFields`` for each kind of write.

    update        ``managedFields: []`` or ``[{}]`` stops tracking until the next apply; other valid entries replace the
                  stored entries, and invalid entries are ignored
    subresource   the stored entries are used, and sent entries are ignored
    apply         the fields of an untracked object first belong to ``before-first-apply``; the manager ``kubectl`` can
                  take over fields from kubectl's client-side apply, and updates its annotation

Source: apimachinery pkg/util/managedfields/internal (fieldmanager, skipnonapplied, lastappliedmanager,
lastappliedupdater, buildmanagerinfo).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from deltaloop.api.json_values import at, copied, escape_html, items, mapping, text
from deltaloop.apiserver.core.apply import field_set
from deltaloop.apiserver.core.apply.ownership import (
    APPLY,
    UPDATE,
    Conflict,
    ConflictsError,
    FieldManager,
    Fields,
    Owners,
    Target,
    apply_owners,
    cap_updaters,
    new_owners,
    read_owners,
    stored_owners,
    update_owners,
    write_owners,
)
from deltaloop.apiserver.core.apply.walking import compare, fields_of
from deltaloop.apiserver.core.crds.codec import settle_numbers
from deltaloop.schemas.nesting import decode_json

BEFORE_FIRST_APPLY: Final = "before-first-apply"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL: Final = "kubectl"
_LONGEST_ANNOTATIONS: Final = 256 * 1024
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class Writer:
    """Field manager of a write; the time is a timestamp, and the subresource is empty for the object itself."""

    manager: str
    time: str
    subresource: str = ""


def created_entries(target: Target, created: Fields, writer: Writer) -> list[Fields]:
    return write_owners(new_owners(_bare(created), _updater(target, writer), target, time=writer.time))


def updated_entries(target: Target, live: Fields, new: Fields, sent: object, writer: Writer) -> list[Fields]:
    """Return the entries after an update; ``sent`` is ``managedFields`` of the request, or None."""
    owners = _owners_before(live, None if writer.subresource else sent)
    if not owners:
        return []
    after = update_owners(owners, _bare(live), _bare(new), _updater(target, writer), target, time=writer.time)
    return write_owners(cap_updaters(after))


def _owners_before(live: Fields, sent: object) -> Owners:
    present = items(live["metadata"].get("managedFields"))
    if sent is None or sent is present or sent == present:
        return stored_owners(present)
    if sent in ([], [{}]):
        return {}
    return read_owners(sent) or stored_owners(present)


def _updater(target: Target, writer: Writer) -> FieldManager:
    return FieldManager(writer.manager, UPDATE, target.api_version, writer.subresource)


def with_entries(fields: Fields, entries: list[Fields]) -> Fields:
    metadata = {name: value for name, value in mapping(fields.get("metadata")).items() if name != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**fields, "metadata": metadata}


def _bare(fields: Fields) -> Fields:
    """Return the object without its entries, which have no owner."""
    return with_entries(fields, []) if "managedFields" in mapping(fields.get("metadata")) else fields


def applied_object(target: Target, live: Fields | None, applied: Fields, writer: Writer, *, force: bool) -> Fields:
    """Return the applied object with its entries, or the live object (None for a create) if it does not change.

    Raises ConflictsError if other managers own fields that would change, unless ``force`` is set.
    """
    applier = FieldManager(writer.manager, APPLY, subresource=writer.subresource)
    owners: Owners = {}
    before: Fields = {}
    if live is not None:
        owners, before = stored_owners(items(live["metadata"].get("managedFields"))), _bare(live)
        if not owners:
            first = FieldManager(BEFORE_FIRST_APPLY, UPDATE, target.api_version, writer.subresource)
            owners = new_owners(before, first, target, time=writer.time)
    try:
        merged, after, changed = apply_owners(owners, before, applied, applier, target, force=force)
    except ConflictsError as error:
        left = _not_from_kubectl(target, before, error.conflicts) if writer.manager == _KUBECTL else error.conflicts
        if left:
            raise ConflictsError(left) from None
        merged, after, changed = apply_owners(owners, before, applied, applier, target, force=True)
    if changed and applier in after:
        mine = after[applier]
        after[applier] = type(mine)(mine.fields, mine.api_version, writer.time)
    result = merged if changed else before
    if writer.manager == _KUBECTL and live is not None:
        result = _with_last_applied(result, applied)
    return with_entries(result, write_owners(after))


def _not_from_kubectl(target: Target, live: Fields, conflicts: tuple[Conflict, ...]) -> tuple[Conflict, ...]:
    """Drop conflicts about fields that kubectl's client-side apply set, and that have not changed since."""
    try:
        last: Any = decode_json(text(at(live, "metadata", "annotations", LAST_APPLIED)))
    except msgspec.DecodeError:
        return conflicts
    if mapping(last).get("apiVersion") != target.api_version:
        return conflicts
    own = fields_of(target.type, last)
    found = compare(target.type, last, live)
    for differing in (found.modified, found.added, found.removed):
        own = field_set.difference(own, differing)
    return tuple(conflict for conflict in conflicts if not field_set.has(own, conflict.path))


def _with_last_applied(fields: Fields, applied: Fields) -> Fields:
    annotations = mapping(at(fields, "metadata", "annotations"))
    if not annotations.get(LAST_APPLIED):
        return fields
    last = copied(applied)
    metadata = mapping(last.get("metadata"))
    if metadata.get("annotations", {}) is None:
        del metadata["annotations"]
    mapping(metadata.get("annotations")).pop(LAST_APPLIED, None)
    settle_numbers(last)
    changed = {**annotations, LAST_APPLIED: escape_html(_encode(last).decode()) + "\n"}
    if sum(len(name) + len(str(value)) for name, value in changed.items()) > _LONGEST_ANNOTATIONS:
        del changed[LAST_APPLIED]
    return {**fields, "metadata": {**fields["metadata"], "annotations": changed}}


def conflict_message(conflicts: tuple[Conflict, ...]) -> str:
    """Return the message of the 409 error (apimachinery pkg/util/managedfields/internal/conflict.go)."""
    if len(conflicts) == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {only.manager.shown}: {field_set.shown(only.path)}"
    lines: list[str] = []
    for conflict in conflicts:
        heading = f"conflicts with {conflict.manager.shown}:"
        if heading not in lines:
            lines.append(heading)
        lines.append(f"- {field_set.shown(conflict.path)}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
