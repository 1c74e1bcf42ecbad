"""Text of a plan for people; objects with equal changes are shown together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from deltaloop.api.plain_text import one_line
from deltaloop.planning.core.result import Action, FieldChange, ObjectChange, Plan

_SIGNS: Final[dict[Action, str]] = {"create": "+", "update": "~", "delete": "-", "replace": "±"}
_MOST_KEYS: Final = 10
_MOST_FIELDS: Final = 20
_MOST_SHOWN: Final = 100
_NOTHING: Final = "(none)"
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def plan_text(plan: Plan) -> str:
    return "\n".join(one_line(line) for line in _lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    own = [change for change in plan.changes if change.controller]
    if plan.against:
        yield f"Differences from {plan.against}:"
    counted = Counter(change.action for change in own)
    said = ", ".join(f"{counted[action]} to {action}" for action in _SIGNS if counted[action])
    yield f"Changes: {said or 'none'}"
    for group in _groups(own):
        yield from _group_lines(group)
    if plan.restarts:
        yield ""
        pods = sum(each.pods for each in plan.restarts)
        yield f"Restarts: {_number(len(plan.restarts), 'workload')} with {_number(pods, 'Pod')}"
        yield from _listed([f"{each.kind} {each.key}" for each in plan.restarts])
    others = Counter(f"{change.kind} to {change.action}" for change in plan.changes if not change.controller)
    if others:
        yield ""
        yield "Consequences in the cluster:"
        yield from (f"  {count} {said}" for said, count in sorted(others.items()))
    if plan.problems:
        yield ""
        yield "Problems:"
        for problem in plan.problems:
            yield f"  {problem.reason}: {problem.subject}: {problem.message}"
            if problem.place:
                yield f"    at {problem.place}"
    if plan.webhooks_not_asked:
        yield ""
        yield "Webhooks that were not asked (use --server-dry-run):"
        yield from _listed(plan.webhooks_not_asked)
    yield ""
    numbers = plan.numbers
    yield (
        f"{_number(numbers.objects, 'object')}, {_number(numbers.reconciles, 'reconcile')}, "
        f"{_number(numbers.writes, 'write')}, {numbers.retries} retries, {_number(numbers.events, 'Event')}, "
        f"{numbers.seconds:.1f} s of virtual time"
    )


def _groups(changes: Sequence[ObjectChange]) -> list[list[ObjectChange]]:
    found: dict[object, list[ObjectChange]] = {}
    for change in changes:
        fields = _encode(change.fields)
        found.setdefault((change.action, change.kind, change.controller, fields), []).append(change)
    return [*found.values()]


def _group_lines(group: Sequence[ObjectChange]) -> Iterator[str]:
    first = group[0]
    yield ""
    if len(group) == 1:
        yield f"{_SIGNS[first.action]} {first.kind} {first.key}"
    else:
        yield f"{_SIGNS[first.action]} {len(group)} {first.kind}"
        yield from _listed([change.key for change in group])
    yield f"    because  {first.cause}"
    for field in first.fields[:_MOST_FIELDS]:
        yield f"    {_field_text(field)}"
    if len(first.fields) > _MOST_FIELDS:
        yield f"    and {len(first.fields) - _MOST_FIELDS} more fields"


def _field_text(change: FieldChange) -> str:
    if change.redacted and change.before == change.after:
        return f"{change.path}: {_shown(change.before)} (different redacted value)"
    return f"{change.path}: {_shown(change.before)} → {_shown(change.after)}"


def _shown(value: object) -> str:
    if value is None:
        return _NOTHING
    shown = _encode(value).decode()
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 1]}…"


def _listed(found: Sequence[str]) -> Iterator[str]:
    yield from (f"    {each}" for each in found[:_MOST_KEYS])
    if len(found) > _MOST_KEYS:
        yield f"    and {len(found) - _MOST_KEYS} more"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
