"""The verb ``delete``: remove an object or mark it for deletion.

    no finalizers, no grace period    removed (some kinds are marked first)
    finalizers or a grace period      marked: deletionTimestamp and deletionGracePeriodSeconds
    already marked                    unchanged, unless grace is shortened or the propagation policy changes

Source: apiserver pkg/registry/rest/delete.go, pkg/registry/generic/registry/store.go.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

from deltaloop.api.json_values import integer, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.status import Status, StatusDetails
from deltaloop.api.times import format_time, from_epoch, parse_time
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import decode_object, with_resource_version
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.admitting import admit_alone, attributes_of
from deltaloop.apiserver.core.writes.objects import has_finalizers
from deltaloop.apiserver.core.writes.storing import remove, unstored

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class Fate(Enum):
    REMOVED = auto()
    MARKED = auto()
    UNCHANGED = auto()


class DeleteResult(NamedTuple):
    object: Resource
    removed: bool


def delete(
    context: WriteContext, options: DeleteOptions, *, admitted: bool = False, one_of_many: bool = False
) -> DeleteResult:
    """Remove an object, or mark it for deletion; raises ApiError, for example 409 for preconditions."""
    served, strategy, objects = context.served, context.served.strategy, context.objects
    if options.policy is None and strategy.delete_warning:
        context.notes.stored.append(strategy.delete_warning)
    current = context.read()
    before = decode_object(served, current)
    fate, after = delete_object(served, before, options, now=context.moment.now)
    if not admitted:
        admit_alone(context, attributes_of(context, "DELETE", "" if one_of_many else context.name, before=before))
    if context.dry_run:
        return DeleteResult(unstored(context, after, current.resource_version), fate is Fate.REMOVED)
    if fate is Fate.REMOVED:
        if after != before:
            current = objects.update(served.storage, current.key, served.codec.stored(after))
        return DeleteResult(with_resource_version(current, remove(context, current)), removed=True)
    if fate is Fate.MARKED:
        current = objects.update(served.storage, current.key, served.codec.stored(after))
        strategy.marked(current, context.writes, context.moment.now)
    return DeleteResult(current, removed=False)


def check_preconditions(served: ServedResource, current: dict[str, object], options: DeleteOptions) -> None:
    """Raise ConflictError if a delete has a wrong UID or resource version."""
    wanted, metadata = options.preconditions, mapping(current["metadata"])
    if wanted is None:
        return
    if wanted.uid is not None and wanted.uid != metadata["uid"]:
        raise status_errors.delete_conflict(
            served.type,
            text(metadata["name"]),
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated",
        )
    if wanted.resource_version is not None and wanted.resource_version != metadata["resourceVersion"]:
        raise status_errors.delete_conflict(
            served.type,
            text(metadata["name"]),
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({metadata['resourceVersion']}). The object might have been modified",
        )


def delete_object(
    served: ServedResource, current: dict[str, object], options: DeleteOptions, *, now: float
) -> tuple[Fate, dict[str, object]]:
    """Return the effect of a delete, and the object to return and to store, or raise ConflictError.

    A removed object that was marked is stored before its removal, so that watches see both events.
    """
    check_preconditions(served, current, options)
    metadata: dict[str, object] = {**mapping(current["metadata"]), "finalizers": _finalizers(served, current, options)}
    if not metadata["finalizers"]:
        del metadata["finalizers"]
    marked = {**current, "metadata": metadata}
    if "deletionTimestamp" in metadata:
        return _again(served, current, marked, options.grace_period_seconds, now=now)
    grace = served.strategy.grace(current, options.grace_period_seconds)
    removed = grace == 0 and not has_finalizers(served, marked)
    if removed and not served.strategy.marked_when_removed:
        return Fate.REMOVED, current
    metadata["deletionTimestamp"] = format_time(from_epoch(now + grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] = integer(metadata["generation"]) + 1
    served.strategy.mark(current, marked)
    return Fate.REMOVED if removed else Fate.MARKED, marked


def _again(
    served: ServedResource, current: dict[str, object], marked: dict[str, object], grace: int | None, *, now: float
) -> tuple[Fate, dict[str, object]]:
    metadata = mapping(marked["metadata"])
    before = integer(metadata.get("deletionGracePeriodSeconds"))
    if before:
        if grace is None or grace >= before:
            return Fate.UNCHANGED, current
        # The grace period starts at the first delete. If it is over, the pod gets one second, or none if requested.
        end = parse_time(text(metadata["deletionTimestamp"])).timestamp() - before + grace
        if end < now:
            end, grace = now, min(grace, 1)
        metadata["deletionTimestamp"] = format_time(from_epoch(end))
        metadata["deletionGracePeriodSeconds"] = before = grace
    if before == 0 and not has_finalizers(served, marked):
        return Fate.REMOVED, marked if served.strategy.marked_when_removed else current
    return (Fate.UNCHANGED, current) if marked == current else (Fate.MARKED, marked)


def _finalizers(served: ServedResource, current: dict[str, object], options: DeleteOptions) -> list[str]:
    present: list[str] = [*texts(mapping(current["metadata"]).get("finalizers"))]
    dependents = served.strategy.dependents
    policy = options.policy if dependents != "ignored" else "Background"
    if policy is None and dependents == "orphaned" and not {FOREGROUND, ORPHAN} & {*present}:
        policy = "Orphan"
    if policy is not None:
        present = [name for name in present if name not in (FOREGROUND, ORPHAN)]
    if policy == "Foreground":
        present.append(FOREGROUND)
    elif policy == "Orphan":
        present.append(ORPHAN)
    if "deletionTimestamp" not in mapping(current["metadata"]):
        present += [name for name in served.strategy.finalizers if name not in present]
    return present


def deletion_code(options: DeleteOptions, *, removed: bool) -> int:
    """Return the HTTP status of a DELETE: 202 if the object remains because of ``orphanDependents: false``, or 200."""
    return 202 if not removed and options.orphan_dependents is False else 200


def deletion_answer(served: ServedResource, name: str, uid: str, *, removed: bool) -> Status | None:
    """Return the Status of a DELETE, or None if the response is the object."""
    if not removed or served.flags.returned_when_deleted:
        return None
    kind = served.type
    return Status(status="Success", details=StatusDetails(name=name, group=kind.group, kind=kind.plural, uid=uid))
