"""Sequences of steps, each with an aim: requests that have nothing to do with each other find little.

mixed        anything about any of the resources
focused      one resource, whose first objects are good ones
watched      the same, while watches with selectors run, labels change and the past is forgotten
applied      one object that several managers apply, and that others change
operated     one object with labels, and JSON patches of one operation each
evicted      pods, a budget that selects them, evictions
defined      a custom resource that is defined, changed and deleted beneath its objects
compacted    old versions, watches and continue tokens after the servers have forgotten the past
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from lab.conformance.fuzz import definitions
from lab.conformance.fuzz.resources import RESOURCES, UNCACHED, Resource
from lab.conformance.fuzz.steps import COMPACT, MERGE, REQUESTS, Step, good_create, one_step

LONGEST: Final = 14
FUZZED: Final = (*RESOURCES, definitions.THINGS[0])
_FIRST: Final = st.sampled_from([("a",), ("a",), ("a", "b"), ("b", "a")])


@st.composite
def _focused(draw: st.DrawFn, longest: int, resources: Sequence[Resource], requests: Sequence[str]) -> list[Step]:
    resource = draw(st.sampled_from(resources))
    steps = [draw(good_create(resource, name)) for name in draw(_FIRST)] if "create" in requests else []
    return steps + draw(st.lists(one_step([resource], requests), min_size=1, max_size=max(longest - len(steps), 1)))


@st.composite
def _watched(draw: st.DrawFn, longest: int, resources: Sequence[Resource]) -> list[Step]:
    resource = draw(st.sampled_from(resources))
    steps = [draw(one_step([resource], ["watch"])), draw(good_create(resource, "a"))]
    writes = ("label", "label", "update", "delete", "create", "apply")
    room = max(longest - len(steps), 1)
    steps += draw(st.lists(one_step([resource], (*writes, "watch")), min_size=1, max_size=room))
    # Watches that run outlive it. What a new one may still see depends on how much a server's cache remembers.
    if resource.kind != UNCACHED and draw(st.booleans()):
        steps += [COMPACT, *draw(st.lists(one_step([resource], writes), min_size=1, max_size=4))]
    return steps


@st.composite
def _applied(draw: st.DrawFn, longest: int, resources: Sequence[Resource]) -> list[Step]:
    resource = draw(st.sampled_from(resources))
    steps = [draw(one_step([resource], ["apply"])) for _ in range(2)]
    kinds = ["apply", "apply", "apply", "patch", "update", "delete", "read"]
    return steps + draw(st.lists(one_step([resource], kinds), min_size=1, max_size=max(longest - len(steps), 1)))


@st.composite
def _operated(draw: st.DrawFn, longest: int, resources: Sequence[Resource]) -> list[Step]:
    resource = draw(st.sampled_from(resources))
    steps = [draw(good_create(resource, "a", labels={"app": "x"}))]
    kinds = ["operation", "operation", "operation", "patch"]
    return steps + draw(st.lists(one_step([resource], kinds), min_size=1, max_size=max(longest - len(steps), 1)))


_BUDGET: Final = {
    "kind": "PodDisruptionBudget",
    "apiVersion": "policy/v1",
    "metadata": {"name": "a"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
}
_COUNTED: Final = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
_RUNNING: Final = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@st.composite
def _evicted(draw: st.DrawFn, longest: int, pods: Resource, budgets: Resource) -> list[Step]:
    allowed = draw(st.integers(0, 2))
    status = {"status": {**_COUNTED, "disruptionsAllowed": allowed}}
    steps = [
        Step("POST", budgets.path, (), _BUDGET),
        Step("PATCH", f"{budgets.path}/a/status", (), status, MERGE),
        draw(good_create(pods, "a", labels={"app": "x"})),
        Step("PATCH", f"{pods.path}/a/status", (), {"status": _RUNNING}, MERGE),
    ]
    some_of = one_step([pods], ["evict", "evict", "evict", "patch", "label", "create", "delete", "read"])
    others = one_step([budgets], ["patch", "patch", "update", "create", "delete", "read"])
    rest = st.lists(st.one_of(some_of, some_of, others), min_size=1, max_size=max(longest - len(steps), 1))
    return steps + draw(rest)


@st.composite
def _defined(draw: st.DrawFn, longest: int) -> list[Step]:
    objects = one_step(definitions.THINGS, ["create", "create", "update", "patch", "apply", "read", "delete", "label"])
    tables = definitions.tables()
    rest = st.one_of(objects, objects, objects, tables, definitions.changes(), definitions.creates())
    steps = [draw(definitions.creates())]
    return steps + draw(st.lists(rest, min_size=1, max_size=max(longest - 1, 1)))


@st.composite
def _compacted(draw: st.DrawFn, longest: int, resource: Resource) -> list[Step]:
    before = one_step([resource], ["create", "label", "page", "delete"])
    after = one_step([resource], ["create", "read", "old", "old", "page", "watch", "label"])
    steps = [draw(good_create(resource, "a")), draw(good_create(resource, "b"))]
    steps += draw(st.lists(before, max_size=3))
    steps.append(COMPACT)
    return steps + draw(st.lists(after, min_size=1, max_size=max(longest - len(steps), 1)))


def sequences(
    longest: int = LONGEST, resources: Sequence[Resource] = FUZZED, requests: Sequence[str] = tuple(REQUESTS)
) -> st.SearchStrategy[list[Step]]:
    """Sequences of requests of these kinds for these resources.

    Those that need more than one kind of request are there if all requests and their resources are.
    """
    by_kind = {resource.kind: resource for resource in resources}
    there = [resource for resource in resources if resource.kind != "Thing"]
    aims: list[st.SearchStrategy[list[Step]]] = []
    if there:
        focused = _focused(longest, there, requests)
        aims += [st.lists(one_step(there, requests), min_size=1, max_size=longest), focused, focused, focused]
    if set(requests) >= set(REQUESTS):
        if there:
            aims += [_watched(longest, there), _applied(longest, there), _operated(longest, there)]
        if {"Pod", "PodDisruptionBudget"} <= by_kind.keys():
            aims.append(_evicted(longest, by_kind["Pod"], by_kind["PodDisruptionBudget"]))
        if "Thing" in by_kind:
            defined = _defined(longest)
            aims += [defined, defined]
        if UNCACHED in by_kind:
            aims.append(_compacted(longest, by_kind[UNCACHED]))
    return st.one_of(aims)
