"""No schedule gives a range two owners, and every schedule leads back to one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.nightly import by_day
from tests.sharding.core.explorer import DURATION, MULTICLUSTER_RUNTIME, Rules, Search, healed, start, workers

QUIET = Rules(steps=2, losses=0, crashes=0, plans=1, coordinators=1)

SAFE = [
    pytest.param((1,), 2, QUIET, id="hand-over"),
    pytest.param(
        (1,), 2, replace(QUIET, steps=0, plans=2, coordinators=2), id="two coordinators", marks=pytest.mark.nightly
    ),
    pytest.param((1,), 2, replace(QUIET, steps=0, losses=1), id="lost answers"),
    pytest.param((1,), 2, replace(QUIET, steps=1, crashes=1), id="crash"),
    pytest.param(
        (1,), 2, replace(QUIET, losses=1, administrators=True, steps=1), id="deleted Lease", marks=pytest.mark.nightly
    ),
    pytest.param((1, 0), 2, replace(QUIET, steps=0), id="two ranges"),
    pytest.param((1,), 3, replace(QUIET, steps=0), id="three members", marks=pytest.mark.nightly),
    pytest.param(
        (1,),
        2,
        replace(QUIET, steps=3, plans=1, crashes=0, slow_clocks=DURATION),
        id="slow clocks",
        marks=pytest.mark.nightly,
    ),
]
"""The larger settings, and those that are marked nightly, are in ``explore_all``."""

BUGS: list[tuple[str, dict[str, Any]]] = [
    ("an owner that does not wait for its reconciles", {"drains": False}),
    ("a map that is written without its version", {"swaps": False, "steps": 0, "coordinators": 2, "plans": 2}),
    ("an owner that continues after a write without an answer", {"resumes": True, "losses": 1}),
    ("a renew deadline above the lease duration", {"renew_deadline": 4, "steps": 4}),
    ("a Lease that is deleted in any version", {"deletes_any_version": True, "steps": 4}),
    ("a clock that is slower than the deadlines permit", {"slow_clocks": 1, "steps": 4}),
    (
        "an owner without a Lease that counts as dead at once",
        {"administrators": True, "waits_for_missing": False, "losses": 1},
    ),
]


@pytest.mark.parametrize(("owners", "programs", "rules"), SAFE)
def test_range_has_at_most_one_owner_and_finally_one(owners: tuple[int, ...], programs: int, rules: Rules) -> None:
    search = Search(rules)
    assert search.run(start(owners, programs)) is None
    worlds = list(search.parents)
    for world in worlds[:: max(1, len(worlds) // 50)]:
        end = healed(world)
        for each in end.map.ranges:
            assert (len(workers(end, each.start)), each.successor) == (1, ""), search.trace(world)


@pytest.mark.parametrize(("bug", "changes"), by_day(BUGS, BUGS[:1]), ids=[name for name, _ in BUGS])
def test_the_search_finds_seeded_bugs(bug: str, changes: dict[str, Any]) -> None:
    trace = Search(replace(QUIET, **changes)).run(start((1,), 2))
    assert trace, bug


def test_the_rules_of_multicluster_runtime_permit_two_owners() -> None:
    trace = Search(MULTICLUSTER_RUNTIME).run(start((1,), 2))
    assert trace is not None
    assert not any("ends its reconciles" in action for action in trace)
