"""Ownership of fields: the entries of ``metadata.managedFields`` and their changes.

    update     the writer owns the fields that it added or changed, and other managers lose them; removed fields have no
               owner
    apply      changes to fields of other managers are conflicts; fields that the manager applied before but not now
               are removed unless another manager owns them; the manager owns exactly the applied fields

A manager is identified by name, operation, subresource and, for updates, API version.

Source: structured-merge-diff merge/update.go; apimachinery pkg/util/managedfields/internal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast, final

import msgspec

from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.apiserver.core.apply import field_set
from deltaloop.apiserver.core.apply.field_set import FieldSet
from deltaloop.apiserver.core.apply.walking import (
    Comparison,
    additions,
    compare,
    fields_of,
    merge,
    remove,
    with_declared,
)
from deltaloop.schemas.types import TypeNode

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"

Fields: TypeAlias = dict[str, Any]
TypeOf: TypeAlias = Callable[[str], "TypeNode | None"]
InVersion: TypeAlias = Callable[[Fields, str], Fields]


def _as_it_is(fields: Fields, _: str) -> Fields:
    return fields


class Target(msgspec.Struct, frozen=True):
    """Object kind and endpoint of a write."""

    api_version: str
    type_of: TypeOf
    ignored: FieldSet = msgspec.field(default_factory=dict[str, Any])
    only: str = ""
    in_version: InVersion = _as_it_is

    @property
    def type(self) -> TypeNode:
        kind = self.type_of(self.api_version)
        if kind is None:
            raise ValueError(f"{self.api_version} is not served")
        return kind

    @property
    def counts_all(self) -> bool:
        return not (self.only or self.ignored)

    def counted(self, fields: FieldSet) -> FieldSet:
        if self.only:
            return {step: below for step, below in fields.items() if step == self.only}
        return field_set.difference_below(fields, self.ignored) if self.ignored else fields

    def differences(self, kind: TypeNode, old: Fields, new: Fields) -> Comparison:
        """Compare the fields that this endpoint writes, because the other fields do not change."""
        found = compare(kind, old, new)
        if self.counts_all or found.same:
            return found
        return Comparison(self.counted(found.added), self.counted(found.modified), self.counted(found.removed))


class FieldManager(msgspec.Struct, frozen=True):
    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @property
    def shown(self) -> str:
        result = f'"{self.name}"'
        if self.subresource:
            result += f' with subresource "{self.subresource}"'
        return f"{result} using {self.api_version}" if self.operation == UPDATE else result


class Owned(msgspec.Struct, frozen=True):
    fields: FieldSet
    api_version: str
    time: str = ""


Owners: TypeAlias = dict[FieldManager, Owned]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Field that an apply would change although another manager owns it."""

    manager: FieldManager
    path: tuple[str, ...]

    @property
    def place(self) -> str:
        return field_set.shown(self.path)


@final
class ConflictsError(Exception):
    """Rejected apply, with its conflicts sorted by manager and path."""

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


def read_owners(entries: object) -> Owners | None:
    """Parse ``managedFields``; return None if they are malformed."""
    if fault_of_entries(entries):
        return None
    return {
        _manager_of(entry, api_version): Owned(
            cast("FieldSet", entry.get("fieldsV1", {})), api_version, text(entry.get("time"))
        )
        for entry in map(mapping, items(entries))
        for api_version in (text(entry.get("apiVersion")),)
    }


def fault_of_entries(entries: object) -> str:
    """Return the error in ``managedFields``, or an empty string."""
    for place, entry in enumerate(items(entries)):
        kind = at(entry, "fieldsType")
        if at(entry, "operation") not in (APPLY, UPDATE):
            return "operation must be `Apply` or `Update`"
        if not text(at(entry, "apiVersion")):
            return "apiVersion must not be empty"
        if kind != "FieldsV1":
            what = f'invalid fieldsType "{text(kind)}"' if kind else "missing fieldsType"
            return f"{what} in managed fields entry {place}"
        if not field_set.is_field_set(mapping(entry).get("fieldsV1", {})):
            return f"error decoding versioned set of managed fields entry {place}"
    return ""


def stored_owners(entries: Iterable[Any]) -> Owners:
    """Parse ``managedFields`` from the store without validation."""
    return {
        _manager_of(entry, entry["apiVersion"]): Owned(
            entry.get("fieldsV1", {}), entry["apiVersion"], entry.get("time") or ""
        )
        for entry in entries
    }


def _manager_of(entry: dict[str, Any], api_version: str) -> FieldManager:
    operation = entry["operation"]
    return FieldManager(
        entry.get("manager") or "",
        operation,
        "" if operation == APPLY else api_version,
        entry.get("subresource") or "",
    )


def write_owners(owners: Owners) -> list[Fields]:
    ordered = sorted(
        owners.items(),
        key=lambda item: (item[0].operation, item[1].time, item[0].name, item[1].api_version, item[0].subresource),
    )
    return [_entry(manager, owned) for manager, owned in ordered]


def _entry(manager: FieldManager, owned: Owned) -> Fields:
    entry: Fields = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields,
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value != ""}


def update_owners(
    owners: Owners, old: Fields, new: Fields, writer: FieldManager, target: Target, *, time: str
) -> Owners:
    """Return the owners after an update from ``old`` to ``new``. ``time`` is in the format of the entries."""
    after, compared = _without_changed(owners, old, new, target, but=None)
    mine = strip(target.counted(field_set.union(compared.modified, compared.added)))
    if mine:
        before = after.get(writer)
        fields = field_set.union(mine, before.fields) if before is not None else mine
        after[writer] = Owned(fields, target.api_version, time)
    return after


def new_owners(new: Fields, writer: FieldManager, target: Target, *, time: str) -> Owners:
    kind = target.type
    mine = strip(target.counted(additions(kind, kind.zero or {}, new)))
    return {writer: Owned(mine, target.api_version, time)} if mine else {}


def _without_changed(
    owners: Owners, old: Fields, new: Fields, target: Target, *, but: FieldManager | None
) -> tuple[Owners, Comparison]:
    compared = target.differences(target.type, old, new)
    if compared.same and all(owned.api_version == target.api_version for owned in owners.values()):
        return dict(owners), compared
    comparisons = {target.api_version: compared}
    after: Owners = {}
    gone: dict[str, FieldSet] = {}
    for manager, owned in owners.items():
        if manager == but:
            after[manager] = owned
            continue
        version = owned.api_version
        seen = _compared(comparisons, version, old, new, target)
        if seen is None:
            continue
        if version not in gone:
            gone[version] = seen.all
        fields = field_set.difference(owned.fields, gone[version])
        if fields:
            after[manager] = owned if fields is owned.fields else msgspec.structs.replace(owned, fields=fields)
    return after, compared


def _compared(
    comparisons: dict[str, Comparison], api_version: str, old: Fields, new: Fields, target: Target
) -> Comparison | None:
    if api_version not in comparisons:
        kind = target.type_of(api_version)
        if kind is None:
            return None
        old, new = target.in_version(old, api_version), target.in_version(new, api_version)
        comparisons[api_version] = target.differences(kind, old, new)
    return comparisons[api_version]


def apply_owners(
    owners: Owners, live: Fields, applied: Fields, applier: FieldManager, target: Target, *, force: bool
) -> tuple[Fields, Owners, bool]:
    """Merge an applied object into the live object."""
    merged = cast("Fields", merge(target.type, live, applied))
    last = owners.get(applier)
    mine = Owned(
        target.counted(fields_of(target.type, applied)), target.api_version, last.time if last is not None else ""
    )
    claimed: Owners = {**owners, applier: mine}
    if last is not None and (last.api_version != mine.api_version or field_set.difference(last.fields, mine.fields)):
        merged = _prune(merged, claimed, last, target)
    if not force:
        _check_conflicts(owners, live, merged, applier, target)
    after, compared = _without_changed(claimed, live, merged, target, but=applier)
    stripped = strip(mine.fields)
    after.pop(applier, None)
    if stripped:
        after[applier] = msgspec.structs.replace(mine, fields=stripped)
    # A change outside of the written fields also counts, although it will not be stored.
    return merged, after, not (compared.same and (target.counts_all or compare(target.type, live, merged).same))


def _check_conflicts(owners: Owners, live: Fields, merged: Fields, applier: FieldManager, target: Target) -> None:
    comparisons: dict[str, Comparison] = {}
    conflicts: list[Conflict] = []
    for manager in sorted(owners, key=lambda one: (one.name, one.operation, one.api_version, one.subresource)):
        owned = owners[manager]
        seen = _compared(comparisons, owned.api_version, live, merged, target)
        if manager == applier or seen is None:
            continue
        changed = target.counted(field_set.union(seen.modified, seen.added))
        conflicts += [
            Conflict(manager, path) for path in field_set.paths(field_set.intersection(owned.fields, changed))
        ]
    if conflicts:
        raise ConflictsError(tuple(conflicts))


def _prune(merged: Fields, owners: Owners, last: Owned, target: Target) -> Fields:
    """Remove the fields that the applier applied before, unless any manager still owns them."""
    kind = target.type_of(last.api_version)
    if kind is None:
        return merged
    whole = merged = target.in_version(merged, last.api_version)
    before = with_declared(kind, last.fields)
    pruned = _taken_out(kind, merged, before)
    # Restore owned fields inside of removed containers.
    managed: dict[str, FieldSet] = {last.api_version: {}}
    for owned in owners.values():
        managed[owned.api_version] = field_set.union(managed.get(owned.api_version, {}), owned.fields)
    for api_version, fields in managed.items():
        other = target.type_of(api_version)
        if other is None:
            continue
        merged, pruned = target.in_version(merged, api_version), target.in_version(pruned, api_version)
        kept = field_set.union(with_declared(other, fields_of(other, pruned)), with_declared(other, fields))
        pruned = _taken_out(other, merged, field_set.difference(with_declared(other, fields_of(other, merged)), kept))
    # Restore fields inside of removed containers that the applier never owned.
    pruned = target.in_version(pruned, last.api_version)
    gone = field_set.difference(
        with_declared(kind, fields_of(kind, whole)), with_declared(kind, fields_of(kind, pruned))
    )
    return target.in_version(_taken_out(kind, whole, field_set.intersection(gone, before)), target.api_version)


def _taken_out(kind: TypeNode, fields: Fields, gone: FieldSet) -> Fields:
    return cast("Fields", remove(kind, fields, gone) or {})


_STRIPPED: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        **{
            field_set.field_step(name): {}
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        },
    },
}


def strip(fields: FieldSet) -> FieldSet:
    return field_set.difference(fields, _STRIPPED)


def cap_updaters(owners: Owners) -> Owners:
    """Merge the oldest updates of each version into one entry, so that at most ten updates are left."""
    updaters = [manager for manager in owners if manager.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return owners
    result = dict(owners)
    updaters.sort(key=lambda one: (owners[one].time, one.name, one.api_version, one.subresource))
    first: dict[str, FieldManager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        owned = result[manager]
        bucket = FieldManager(ANCIENT, UPDATE, owned.api_version)
        if owned.api_version not in first:
            first[owned.api_version] = manager
            continue
        if bucket not in result:
            result[bucket] = result.pop(first[owned.api_version])
        fields = field_set.union(owned.fields, result[bucket].fields)
        result[bucket] = Owned(fields, owned.api_version, owned.time)
        if manager != bucket:
            del result[manager]
        excess -= 1
    return result
