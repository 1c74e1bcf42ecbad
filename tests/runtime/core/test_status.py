from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.json_values import is_mapping, items, mapping, value_type
from deltaloop.runtime.core import status as core
from deltaloop.runtime.core.status import Kept, StatusChange, describe_error
from tests.having import having
from tests.nightly import examples

T1, T2 = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"
Json = dict[str, Any]


def patched(target: Any, patch: Any) -> Any:
    """Apply a merge patch."""
    if not is_mapping(patch):
        return patch
    result = dict(mapping(target))
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = patched(result.get(name), value)
    return result


@dataclass(frozen=True)
class Schema:
    """What a server makes of a status: fields that it has no place for, and those that it fills in."""

    drops: tuple[str, ...] = ()
    fills: tuple[tuple[str, str, int], ...] = ()
    """In the object of a field, a field, and its default."""
    drops_observed: bool = False

    def stored(self, status: Json) -> Json:
        kept = {name: self._inner(value) for name, value in status.items() if name not in self.drops}
        for name, field, default in self.fills:
            if isinstance(kept.get(name), dict):
                kept[name].setdefault(field, default)
        if self.drops_observed:
            kept.pop("observedGeneration", None)
            kept["conditions"] = [without_observed(each) for each in kept.get("conditions", [])]
        return {name: value for name, value in kept.items() if name != "conditions" or value or name in status}

    def _inner(self, value: Any) -> Any:
        if is_mapping(value):
            return {name: self._inner(inner) for name, inner in value.items() if name not in self.drops}
        return [self._inner(each) for each in items(value)] if value_type(value) == "array" else value


Say = Callable[[Any], None]


def sets(name: str, value: Any) -> Say:
    return lambda change: change.set_field(name, value)


def condition(type_name: str, status: str, reason: str = "Why") -> Say:
    return lambda change: change.set_condition(type_name, status, reason=reason, message="")


def removes_condition(type_name: str) -> Say:
    return lambda change: change.remove_condition(type_name)


SCHEMAS = (
    Schema(),
    Schema(drops=("x",)),
    Schema(drops=("a",), drops_observed=True),
    Schema(drops=("conditions",)),
    Schema(fills=(("b", "z", 7),)),
)


def entry(type_name: str, status: str, **more: Any) -> Json:
    return {"type": type_name, "status": status, "reason": "Why", "message": "", "lastTransitionTime": T1, **more}


PRESENT: tuple[Json, ...] = (
    {},
    {"a": 1, "other": {"kept": True}, "observedGeneration": 3},
    {"b": {"x": 1, "w": 2}, "observedGeneration": 2, "conditions": []},
    {"a": 2, "b": [{"x": 1}], "conditions": [entry("Theirs", "True"), entry("Ready", "True", observedGeneration=3)]},
    {"conditions": [entry("Ready", "True")]},
    {"conditions": ["odd", entry("Ready", "False", theirs=1, observedGeneration=3), entry("Ready", "True")]},
)


def without_observed(entry: Any) -> Any:
    return {name: value for name, value in entry.items() if name != "observedGeneration"} if entry != "odd" else entry


def expected(says: tuple[str, ...], schema: Schema, before: Json) -> Json:
    """Return the status that there has to be, worked out by hand."""
    after = {**before}
    wanted: dict[str, tuple[str, str] | None] = {}
    for each in says:
        match each.split():
            case ["Ready"]:
                wanted["Ready"] = ("True", "Why")
            case ["not", "Ready"]:
                wanted["Ready"] = ("False", "Why")
            case ["Ready", _]:
                wanted["Ready"] = ("True", "Because")
            case ["no", "Ready"]:
                wanted["Ready"] = None
            case ["no", name]:
                after.pop(name, None)
            case _:
                after[each[0]] = FIELDS[each]
    changes = False
    if wanted:
        after["conditions"], changes = conditions(wanted["Ready"], before.get("conditions", []))
        if not after["conditions"] and "conditions" not in before:
            del after["conditions"]
    after = schema.stored(after)
    others = {name: value for name, value in before.items() if name != "conditions"}
    changes = changes and "conditions" not in schema.drops
    changes |= text({**after, "conditions": 0}) != text({**others, "conditions": 0})
    changes |= before.get("observedGeneration", 3) != 3
    return schema.stored({**after, "observedGeneration": 3}) if changes else before


def conditions(wanted: tuple[str, str] | None, before: list[Any]) -> tuple[list[Any], bool]:
    """Return the conditions that there have to be, and if that is worth a write."""
    theirs = [each for each in before if each == "odd" or each["type"] != "Ready"]
    ours = [each for each in before if each not in theirs]
    if wanted is None:
        return theirs, bool(ours)
    same = bool(ours) and ours[0]["status"] == wanted[0]
    new: Json = {**(ours[0] if ours else {}), **entry("Ready", wanted[0]), "reason": wanted[1], "observedGeneration": 3}
    new["lastTransitionTime"] = T1 if same else T2
    after: list[Any] = (
        [new if each == ours[0] else each for each in before if each in [*theirs, ours[0]]] if ours else [*theirs, new]
    )
    changes = len(ours) != 1 or without_observed(ours[0]) != without_observed(new)
    return after, changes or ours[0].get("observedGeneration", 3) != 3


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def faults(says: tuple[str, ...], schema: Schema, before: Json, *, module: Mapping[str, Any]) -> list[str]:
    """Let reconciles say the same of a status, and tell what is wrong with what they wrote."""
    before = schema.stored(before)
    wanted = expected(says, schema, before)
    kept, status, written = module["Kept"](), before, 0
    for _ in range(4):
        change = module["StatusChange"](3)
        for each in says:
            SAYS[each](change)
        patch = change.patch(status, kept=kept, now=T2, observing=True)
        if patch is None:
            break
        written += 1
        status, sent = schema.stored(patched(status, patch)), patch
        kept.learn(sent, status)
    # What a schema drops or fills in is learnt from the first write that says it; with that, observedGeneration goes.
    needed = text(wanted) != text(before)
    seen = Schema(drops_observed=True).stored if written > needed else dict[str, Any]
    wrong = [] if text(seen(status)) == text(seen(wanted)) else [f"{status} instead of {wanted}"]
    if not needed <= written <= needed + (schema != Schema()):
        wrong.append(f"{written} writes instead of {needed}")
    return wrong


FIELDS: Json = {
    "a=1": 1,
    "a=2": 2,
    "a=True": True,
    "b={x:1}": {"x": 1},
    "b={y:1}": {"y": 1},
    "b={}": {},
    "b=[{x:1}]": [{"x": 1}],
    "b=[{x:2},{x:1}]": [{"x": 2}, {"x": 1}],
}
SAYS: dict[str, Say] = {
    **{name: sets(name[0], value) for name, value in FIELDS.items()},
    "no a": sets("a", None),
    "no b": sets("b", None),
    "Ready": condition("Ready", "True"),
    "not Ready": condition("Ready", "False"),
    "Ready otherwise": condition("Ready", "True", "Because"),
    "no Ready": removes_condition("Ready"),
}
SAID = [(), *((one,) for one in SAYS), *combinations(SAYS, 2)]


def all_faults(module: Mapping[str, Any], *, first: bool = False) -> list[str]:
    found: list[str] = []
    for says, schema, before in product(SAID, SCHEMAS, PRESENT):
        found += [f"{says} on {before} with {schema}: {each}" for each in faults(says, schema, before, module=module)]
        if found and first:
            return found
    return found


def test_status_changes_satisfy_invariants() -> None:
    assert all_faults(vars(core))[:5] == []


NAMES = st.sampled_from(["a", "b", "x", "y"])
VALUES = st.recursive(
    st.sampled_from([0, 1, True, "1", 1.5]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=6,
)
STATUSES = st.dictionaries(NAMES, VALUES, max_size=4)


@settings(max_examples=examples(80))
@given(STATUSES, STATUSES, st.sets(NAMES, max_size=2))
def test_fields_dropped_by_schema_are_learned_in_two_writes(before: Json, said: Json, drops: set[str]) -> None:
    schema = Schema(drops=tuple(drops))
    kept, status = Kept(), schema.stored(before)
    change = StatusChange(0)
    for name, value in said.items():
        change.set_field(name, value)
    for _ in range(2):
        patch = change.patch(status, kept=kept, now=T1, observing=True)
        if patch is not None:
            status = schema.stored(patched(status, patch))
            kept.learn(patch, status)
    assert text(status) == text(schema.stored({**before, **said}))
    assert change.patch(status, kept=kept, now=T1, observing=True) is None


def test_dropped_field_is_reported_once() -> None:
    kept = Kept()
    sent = {"typo": 1, "list": [{"x": 1}, {"x": 2, "y": 3}], "observedGeneration": 3, "gone": None}
    stored = {"list": [{}, {"y": 3}]}
    assert kept.learn(sent, stored) == ["status.typo", "status.list[].x"]
    assert kept.learn(sent, stored) == []
    assert kept.difference_of_field(1, {}, ("typo",)) == (1, False)
    kept.learn({"typo": 1}, {"typo": 1})
    assert kept.difference_of_field(1, {}, ("typo",)) == (1, True)


def test_error_changes_one_condition_only() -> None:
    change = StatusChange(3)
    change.set_field("a", 2)
    change.set_condition("Synced", True, reason="Yes", message="")
    failed = change.of_error("Ready", KeyError("token=abcdef"))
    present: Json = {"a": 1, "observedGeneration": 2, "conditions": [entry("Theirs", "True"), entry("Ready", "True")]}
    patch = failed.patch(present, kept=Kept(), now=T2, observing=False)
    assert patch is not None
    assert [*patch] == ["conditions"]
    assert patch["conditions"] == [
        entry("Theirs", "True"),
        {
            "type": "Ready",
            "status": "False",
            "reason": "KeyError",
            "message": "'token=<redacted>'",
            "lastTransitionTime": T2,
            "observedGeneration": 3,
        },
    ]
    assert failed.patch(patched(present, patch), kept=Kept(), now=T1, observing=False) is None


class _Odd1Error(Exception):
    pass


Foreign = type("Ünsäglich", (Exception,), {})


def test_condition_has_reason_and_message_of_error() -> None:
    assert describe_error(ValueError("no\n  such\tthing")) == ("ValueError", "no such thing")
    assert describe_error(_Odd1Error()) == ("Odd1Error", "")
    assert describe_error(Foreign("x")) == ("Error", "x")
    assert len(describe_error(ValueError("a" * 5000))[1]) == 500
    assert describe_error(ExceptionGroup("tasks", [KeyError("x")])) == ("KeyError", "'x'")
    nested = ExceptionGroup("tasks", [KeyError("x"), ExceptionGroup("more", [ValueError("y")])])
    assert describe_error(nested) == ("ExceptionGroup", "KeyError: 'x'; ValueError: y")


def test_invalid_status_fields_are_rejected() -> None:
    change = StatusChange(3)
    for name in ("conditions", "observedGeneration"):
        with pytest.raises(InvalidArgumentError, check=having(argument=f"status.{name}")):
            change.set_field(name, [])
    with pytest.raises(MalformedObjectError, match=r"status\.a"):
        change.set_field("a", {"b": float("nan")})
    with pytest.raises(InvalidArgumentError, check=having(argument="reason of condition Ready")):
        change.set_condition("Ready", True, reason="", message="")
    with pytest.raises(InvalidArgumentError, check=having(argument="status of condition Ready")):
        change.set_condition("Ready", "maybe", reason="Why", message="")
    with pytest.raises(InvalidArgumentError, check=having(argument="condition type")):
        change.remove_condition("two words")
    assert change.patch({}, kept=Kept(), now=T1, observing=True) is None


def test_status_change_copies_values_without_nulls() -> None:
    change, value = StatusChange(3), {"x": [1, {"y": None}], "z": None}
    change.set_field("a", value)
    change.set_field("gone", None)
    value["x"] = []
    assert change.shown({"gone": 1, "b": 2}) == {"a": {"x": [1, {}]}, "b": 2}
    present: Json = {"conditions": [entry("Ready", "True")]}
    assert change.shown_condition("Ready", present) == entry("Ready", "True")
    assert change.shown_condition("Other", present) is None
    change.set_condition("Ready", False, reason="Why", message="so")
    shown = change.shown_condition("Ready", present)
    assert shown is not None
    assert (shown["status"], shown["message"], shown["observedGeneration"]) == ("False", "so", 3)
    change.remove_condition("Ready")
    assert change.shown_condition("Ready", present) is None
