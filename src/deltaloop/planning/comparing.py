"""Differences between the plans of two versions on the same snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.planning.core.differences import field_changes
from deltaloop.planning.core.result import Action, ObjectChange, Plan
from deltaloop.planning.run import PlanOutcome
from deltaloop.runtime.core.children import APPLIED_HASH
from deltaloop.simulation.core.end_states import end_state

Place: TypeAlias = tuple[str, str]
Fields: TypeAlias = Mapping[str, object]


class OtherOutcome(msgspec.Struct, frozen=True):
    """Result of another version: its plan, and its changed objects by kind and key."""

    plan: Plan
    changed: list[tuple[str, str, dict[str, object] | None, dict[str, object] | None]]


def other_outcome(outcome: PlanOutcome) -> OtherOutcome:
    changed = [
        (kind, key, None if before is None else dict(before), None if after is None else dict(after))
        for (kind, key), (before, after) in outcome.changed.items()
    ]
    return OtherOutcome(outcome.plan, changed)


def compared(new: PlanOutcome, old: OtherOutcome, *, name: str) -> Plan:
    """Return the plan of the new version, with only the differences from the old version's."""
    old_changed = {(kind, key): (before, after) for kind, key, before, after in old.changed}
    wanted: dict[Place, Fields] = {}
    found: dict[Place, Fields] = {}
    for place in {*new.changed, *old_changed}:
        before = new.changed[place][0] if place in new.changed else old_changed[place][0]
        after_new = new.changed[place][1] if place in new.changed else before
        after_old = old_changed[place][1] if place in old_changed else before
        if after_new is not None:
            found[place] = after_new
        if after_old is not None:
            wanted[place] = after_old
    known = {(each.kind, each.key): each for each in (*old.plan.changes, *new.plan.changes)}
    changes = [*_differences(_normalized(wanted), _normalized(found), known)]
    places = {(change.kind, change.key) for change in changes}
    problems = {(each.reason, each.subject) for each in old.plan.problems}
    return msgspec.structs.replace(
        new.plan,
        changes=tuple(changes),
        restarts=tuple(each for each in new.plan.restarts if (each.kind, each.key) in places),
        problems=tuple(each for each in new.plan.problems if (each.reason, each.subject) not in problems),
        against=name,
    )


def _normalized(objects: Mapping[Place, Fields]) -> Mapping[Place, Fields]:
    made: list[Resource] = []
    for (kind, _), fields in objects.items():
        api_version, _, name = kind.rpartition("/")
        made.append(Resource.from_dict(fields, ResourceType[Resource].untyped(api_version, name, f"{name.lower()}s")))
    return end_state(made).objects


def _differences(
    old: Mapping[Place, Fields], new: Mapping[Place, Fields], known: Mapping[Place, ObjectChange]
) -> list[ObjectChange]:
    changes: list[ObjectChange] = []
    for place in sorted({*old, *new}):
        before, after = old.get(place), new.get(place)
        if before == after:
            continue
        fields = field_changes(before, after) if before is not None and after is not None else ()
        action: Action = "create" if before is None else "delete" if after is None else "update"
        if action == "update" and all(field.path.endswith(f'"{APPLIED_HASH}"') for field in fields):
            continue  # a uid or a random value differs
        change = known.get(place)
        changes.append(
            ObjectChange(
                action=action,
                kind=place[0],
                key=place[1],
                controller="" if change is None else change.controller,
                cause="" if change is None else change.cause,
                fields=fields,
            )
        )
    return changes
