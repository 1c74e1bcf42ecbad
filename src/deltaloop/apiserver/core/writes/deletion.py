"""What a delete does to one object: remove it, mark it, or nothing.

    nothing holds it, no grace        removed; an object of some kinds is marked first
    finalizers, or a grace period     marked: deletionTimestamp and deletionGracePeriodSeconds
    marked already                    nothing, unless grace is shortened or the propagation policy changes

What holds an object besides its finalizers, and how long it has to end, is in the strategy of its kind.

Source: apiserver pkg/registry/rest/delete.go, pkg/registry/generic/registry/store.go.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from deltaloop.api.json_values import integer, mapping, text, texts
from deltaloop.api.times import format_time, from_epoch, parse_time
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.objects import has_finalizers

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class Fate(Enum):
    """What becomes of the object."""

    REMOVED = auto()
    MARKED = auto()
    UNCHANGED = auto()


def check_preconditions(served: ServedResource, current: dict[str, object], options: DeleteOptions) -> None:
    """Refuse a delete that meant another object, or another state of it.

    Raises:
        ConflictError: Saying which precondition failed.
    """
    wanted, metadata = options.preconditions, mapping(current["metadata"])
    if wanted is None:
        return
    if wanted.uid is not None and wanted.uid != metadata["uid"]:
        raise failures.delete_conflict(
            served.type,
            text(metadata["name"]),
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated",
        )
    if wanted.resource_version is not None and wanted.resource_version != metadata["resourceVersion"]:
        raise failures.delete_conflict(
            served.type,
            text(metadata["name"]),
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({metadata['resourceVersion']}). The object might have been modified",
        )


def delete_object(
    served: ServedResource, current: dict[str, object], options: DeleteOptions, *, now: float
) -> tuple[Fate, dict[str, object]]:
    """Decide about one object.

    Args:
        served: The kind that the request names, as it is served.
        current: The object as it is.
        options: The ``DeleteOptions``, already checked.
        now: Seconds since 1970.

    Returns:
        What becomes of it, and the object: to answer with, and to store unless it is as it was. What is marked when it
        is removed is stored once more before, and its watchers see both.

    Raises:
        ConflictError: If a precondition fails.
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
    served.strategy.mark(marked)
    if metadata.get("generation"):
        metadata["generation"] = integer(metadata["generation"]) + 1
    return Fate.REMOVED if removed else Fate.MARKED, marked


def _again(
    served: ServedResource, current: dict[str, object], marked: dict[str, object], grace: int | None, *, now: float
) -> tuple[Fate, dict[str, object]]:
    metadata = mapping(marked["metadata"])
    before = integer(metadata.get("deletionGracePeriodSeconds"))
    if before:
        if grace is None or grace >= before:
            return Fate.UNCHANGED, current
        # Grace counts from the first delete; if it is over, the pod still gets one second unless it gets none.
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
