"""Evictions: what becomes of a pod, for every small world, is what a model says; seeded bugs are found."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import pytest

from deltaloop.api.json_values import at, items, mapping
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.kinds import pod_eviction
from deltaloop.apiserver.core.kinds.pod_eviction import budget_to_spend
from deltaloop.apiserver.core.storage.store import RevisionStore

PDBS = "poddisruptionbudgets.policy"


@dataclass(frozen=True)
class World:
    """A pod and the budgets around it."""

    phase: str = "Running"
    ready: str = "True"
    deleting: bool = False
    selected: bool = True
    budgets: int = 1
    allowed: int = 1
    healthy: int = 2
    needed: int = 2
    policy: str = ""
    counted: bool = True
    elsewhere: bool = False


def outcome(world: World) -> str:
    """Say what the documentation says, in its order."""
    if world.deleting or world.phase in ("Pending", "Succeeded", "Failed"):
        return "free"
    matching = 0 if not world.selected or world.elsewhere else world.budgets
    if matching == 0:
        return "free"
    if matching > 1:
        return "500"
    if world.ready != "True" and (world.policy == "AlwaysAllow" or world.healthy >= world.needed > 0):
        return "free"
    if not world.counted:
        return "429 in 10"
    return f"{world.allowed - 1} left" if world.allowed else "429"


_SMALL = [
    World(*values)
    for values in itertools.product(
        ("Running", "Pending", "Succeeded", "Failed"),
        ("True", "False"),
        (False, True),
        (True, False),
        (1, 2),
        (0, 1, 2),
        (1, 2),
        (0, 2),
        ("", "AlwaysAllow"),
    )
]
WORLDS = [
    *_SMALL,
    *(replace(world, counted=False) for world in _SMALL[::7]),
    *(replace(world, elsewhere=True) for world in _SMALL[::11]),
]


def make(world: World) -> tuple[RevisionStore, Any]:
    store = RevisionStore()
    metadata: dict[str, Any] = {"name": "p", "namespace": "a", "labels": {"app": "web"}}
    if world.deleting:
        metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    conditions = [{"type": "Ready", "status": world.ready}]
    pod = store.create(
        "pods", "a/p", {"metadata": metadata, "status": {"phase": world.phase, "conditions": conditions}}
    )
    where = "b" if world.elsewhere else "a"
    for number in range(world.budgets):
        labels = {"app": "web" if world.selected else "other"}
        spec: dict[str, Any] = {"selector": {"matchLabels": labels}}
        if world.policy:
            spec["unhealthyPodEvictionPolicy"] = world.policy
        status = {
            "observedGeneration": 3 if world.counted else 2,
            "disruptionsAllowed": world.allowed,
            "currentHealthy": world.healthy,
            "desiredHealthy": world.needed,
        }
        name = f"b{number}"
        fields = {"metadata": {"name": name, "namespace": where, "generation": 3}, "spec": spec, "status": status}
        store.create(PDBS, f"{where}/{name}", fields)
    return store, pod


def observe(world: World) -> str:
    store, pod = make(world)
    try:
        spent = budget_to_spend(store, pod, now=0.0)
    except ApiError as error:
        wait = error.status.details.retry_after_seconds if error.status.details is not None else 0
        return f"{error.status.code} in {wait}" if wait else str(error.status.code)
    if spent is None:
        return "free"
    status: dict[str, Any] = mapping(spent["status"])
    left = status["disruptionsAllowed"]
    assert list(status["disruptedPods"]) == ["p"]
    noted = [item["reason"] for item in status.get("conditions", [])]
    assert noted == ([] if left else ["InsufficientPods"])
    return f"{left} left"


def check_every_world() -> None:
    for world in WORLDS:
        assert observe(world) == outcome(world), world


def test_evictions_match_the_model() -> None:
    check_every_world()


def nothing_free(*_: object) -> bool:
    return False


def all_free(*_: object) -> bool:
    return True


def selects_everything(*_: object) -> bool:
    return True


def spends_nothing(budget: Any, _: object, *, now: float) -> dict[str, Any]:
    fields: dict[str, Any] = budget.to_dict()
    return {**fields, "status": {**fields["status"], "disruptedPods": {"p": str(now)}}}


def forgets_the_condition(budget: dict[str, Any], *, time: str) -> list[dict[str, Any]]:
    return [] if time else [budget]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("_is_free", nothing_free),
        ("_is_free", all_free),
        ("_FREE_PHASES", ()),
        ("_FREE_PHASES", ("Succeeded", "Failed")),
        ("_FREE_PHASES", ("Succeeded", "Failed", "Pending", "Running")),
        ("selects", selects_everything),
        ("selects", nothing_free),
        ("_spend", spends_nothing),
        ("_exhausted", forgets_the_condition),
        ("_PDBS", "pods"),
    ],
)
def test_seeded_bugs_are_detected(part: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_eviction, part, broken)
    with pytest.raises((AssertionError, KeyError)):
        check_every_world()


def test_unchanged_condition_keeps_its_transition_time() -> None:
    store, pod = make(World())
    held = store.get(PDBS, "a/b0")
    assert held is not None
    fields = held.to_dict()
    before = {"type": "DisruptionAllowed", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    for status, wanted in (("False", "2020-01-01T00:00:00Z"), ("True", "1970-01-01T00:00:00Z")):
        fields["status"]["conditions"] = [{**before, "status": status}, {"type": "Other"}]
        store.update(PDBS, "a/b0", fields)
        spent = budget_to_spend(store, pod, now=0.0)
        assert spent is not None
        other, condition = map(mapping, items(at(spent, "status", "conditions")))
        assert (other["type"], condition["lastTransitionTime"]) == ("Other", wanted)
