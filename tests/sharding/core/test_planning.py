"""Cuts and owners."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.api.shard_selector import HASH_SPACE, shard_hash
from deltaloop.sharding.core.key_ranges import KeyRanges
from deltaloop.sharding.core.membership import MemberLease
from deltaloop.sharding.core.planning import Load, Report, combined_load, plan, summarized_load
from deltaloop.sharding.core.reconcile_time import ReconcileTime
from deltaloop.sharding.core.shard_map import ShardMap, ShardRange


def members(number: int, *, leaving: int = 0) -> list[MemberLease]:
    return [MemberLease(f"l{place}", f"u{place}", "1", 15.0, leaving=place < leaving) for place in range(number)]


def load_of(names: list[str]) -> Load:
    return sorted((shard_hash(name), 1.0) for name in names)


def settled(shard_map: ShardMap, alive: list[MemberLease], load: Load, dead: frozenset[str] = frozenset()) -> ShardMap:
    """Plan and hand over until nothing changes; each step keeps the rules of ``ShardMap``."""
    for _ in range(20):
        new = plan(shard_map, alive, dead, load)
        if new is None:
            return shard_map
        check_rules(shard_map, new, dead)
        shard_map = ShardMap(tuple(each.given_to(each.successor) if each.successor else each for each in new.ranges))
    raise AssertionError("the planner does not come to rest")


def check_rules(old: ShardMap, new: ShardMap, dead: frozenset[str]) -> None:
    bounds = [each.start for each in new.ranges]
    assert bounds[0] == 0
    assert bounds == sorted(set(bounds))
    assert new.ranges[-1].end == HASH_SPACE
    assert all(each.end == after.start for each, after in zip(new.ranges, new.ranges[1:], strict=False))
    for each in new.ranges:
        before = [known for known in old.ranges if known.start < each.end and each.start < known.end]
        if {known.owner for known in before} != {each.owner}:
            assert all(not known.owner or known.owner in dead for known in before)
        if len(before) > 1 or (before[0].start, before[0].end) != (each.start, each.end):
            assert not any(known.successor for known in before)


def shares(shard_map: ShardMap, load: Load) -> tuple[float, float]:
    """Return the largest range and the largest member, each divided by the mean."""
    weights = [sum(weight for number, weight in load if each.start <= number < each.end) for each in shard_map.ranges]
    owners: dict[str, float] = {}
    for each, weight in zip(shard_map.ranges, weights, strict=True):
        owners[each.owner] = owners.get(each.owner, 0.0) + weight
    return max(weights) * len(weights) / sum(weights), max(owners.values()) * len(owners) / sum(owners.values())


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8, 64])
def test_a_thousand_namespaces_named_in_sequence_are_cut_evenly(number: int) -> None:
    load = load_of([f"tenant-{place:03}" for place in range(1000)])
    shard_map = settled(ShardMap.of_equal_ranges(8), members(number), load)
    largest_range, largest_member = shares(shard_map, load)
    assert largest_range < 1.3
    assert largest_member < 1.1
    assert len({each.owner for each in shard_map.ranges}) == number


def test_a_new_member_receives_only_its_share() -> None:
    load = load_of([f"tenant-{place:03}" for place in range(1000)])
    before = settled(ShardMap.of_equal_ranges(8), members(3), load)
    after = settled(before, members(4), load)
    owner = {number: before.find(number).owner for number, _ in load}
    moved = sum(after.find(number).owner != owner[number] for number, _ in load)
    assert 200 < moved < 300
    assert shares(after, load)[1] < 1.1


@pytest.mark.parametrize("sizes", [1, 20])
def test_members_have_even_shares_while_they_join_one_by_one(sizes: int) -> None:
    load = sorted((shard_hash(f"tenant-{place:03}"), float(place % sizes + 1)) for place in range(1000))
    shard_map = settled(ShardMap.of_equal_ranges(8), members(1), load)
    for number in range(2, 9):
        shard_map = settled(shard_map, members(number), reported(shard_map, load))
        assert shares(shard_map, load)[1] < 1.1


def test_ranges_stay_even_over_joins_leaves_and_jumps_without_repeated_moves() -> None:
    load = load_of([f"tenant-{place:03}" for place in range(1000)])
    shard_map, known, before = ShardMap.of_equal_ranges(8), load, 1
    for number in [1, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5, 4, 3, 2, 8, 1, 7, 2, 5, 8]:
        alive = members(max(number, before))
        alive = [
            each if place < number else MemberLease(each.name, each.uid, "1", 15.0, leaving=True)
            for place, each in enumerate(alive)
        ]
        after = settled(settled(shard_map, alive, known), members(number), known)
        known = reported(after, load)
        after = settled(after, members(number), known)
        moved = sum(after.find(point).owner != shard_map.find(point).owner for point, _ in load)
        assert moved <= 1.25 * max(abs(number - before) / max(number, before), number == 1) * 1000
        known = reported(after, load)
        assert plan(after, members(number), frozenset(), known) is None
        largest_range, largest_member = shares(after, load)
        assert largest_range <= 1.3
        assert largest_member < 1.1
        shard_map, before = after, number


def reported(shard_map: ShardMap, load: Load) -> Load:
    """Return the load in the reports of all owners."""
    starts = [each.start for each in shard_map.ranges]
    reports: dict[str, Report] = {}
    for uid in {each.owner for each in shard_map.ranges}:
        held = KeyRanges((each.start, each.end) for each in shard_map.ranges if each.owner == uid)
        reports[uid] = Report.of(held, dict(load), 256, starts)
    known = combined_load(shard_map, reports)
    assert known.covered
    assert sum(weight for _, weight in known.points) == pytest.approx(sum(weight for _, weight in load))
    return known.points


def test_the_report_of_the_owner_counts_and_otherwise_that_of_an_earlier_owner() -> None:
    half = HASH_SPACE // 2
    shard_map = ShardMap((ShardRange(0, half, 1, "u0"), ShardRange(half, HASH_SPACE, 1, "u1")))
    old = Report.of(KeyRanges([(0, HASH_SPACE)]), {1: 5.0, half + 1: 6.0}, 64)
    new = Report.of(KeyRanges([(0, half)]), {1: 7.0}, 64)
    both, one = (combined_load(shard_map, each) for each in ({"gone": old, "u0": new}, {"u0": new}))
    assert (both.points, both.covered, both.exact) == ([(1, 7.0), (half + 1, 6.0)], True, False)
    assert (one.points, one.covered, one.exact) == ([(1, 7.0)], False, False)
    assert combined_load(shard_map, {"u0": new, "u1": Report.of(KeyRanges([(half, HASH_SPACE)]), {}, 64)}).exact
    assert plan(shard_map, members(2), frozenset(), both.points, cuts=False) is None
    assert old.distance(old) == 0
    assert new.distance(old) > 0.5


@dataclass
class Timed:
    """Members with namespaces of equal size, whose reconciles take different times."""

    cost: dict[str, float]
    names: list[MemberLease]
    objects: float = 10.0
    shard_map: ShardMap = field(default_factory=lambda: ShardMap.of_equal_ranges(64))
    times: dict[str, ReconcileTime] = field(default_factory=dict[str, ReconcileTime])
    reports: dict[str, Report] = field(default_factory=dict[str, Report])
    now: float = 0.0

    def report(self, noise: float, seed: Random) -> None:
        """Reconcile for a minute, and report as ``ShardMember`` does."""
        self.now += 60.0
        starts = [each.start for each in self.shard_map.ranges]
        for uid in sorted({each.owner for each in self.shard_map.ranges if each.owner}):
            held = KeyRanges((each.start, each.end) for each in self.shard_map.ranges if each.owner == uid)
            spent = self.times.setdefault(uid, ReconcileTime(self.now - 60.0))
            own = {name: shard_hash(name) for name in self.cost if shard_hash(name) in held}
            for name, number in own.items():
                spent.add(number, 60.0 * self.cost[name] * (1 + noise * seed.uniform(-1, 1)))
            rates = spent.rates(held, self.now)
            new = Report.of(held, dict.fromkeys(own.values(), self.objects), 256, starts, rates=rates)
            before = self.reports.get(uid)
            if before is None or before.held != held or new.distance(before) >= 0.1:
                self.reports[uid] = new

    def plan(self) -> bool:
        load = combined_load(self.shard_map, self.reports)
        new = plan(self.shard_map, self.names, frozenset(), load.points, by_time=load.by_time)
        if new is None:
            return False
        check_rules(self.shard_map, new, frozenset())
        for each in new.ranges:
            if each.successor:
                number = KeyRanges([(each.start, each.end)])
                gained = self.times.setdefault(each.successor, ReconcileTime(self.now))
                gained.expect(point for point in load.rates if point[0] in number)
        self.shard_map = ShardMap(tuple(each.given_to(each.successor or each.owner) for each in new.ranges))
        return True

    def shares(self) -> dict[str, float]:
        """Return the cost of each member divided by the mean."""
        found = dict.fromkeys((each.uid for each in self.names), 0.0)
        for name, cost in self.cost.items():
            found[self.shard_map.find(shard_hash(name)).owner] += cost
        return {uid: each * len(found) / sum(self.cost.values()) for uid, each in found.items()}


def test_an_expensive_namespace_of_the_same_size_has_fewer_neighbors() -> None:
    timed = Timed({f"team-{place:02}": 1.0 if place == 7 else 0.1 for place in range(30)}, members(2))
    for _ in range(40):
        timed.report(0.0, Random(0))
        timed.plan()
    assert max(timed.shares().values()) < 1.15
    owners = Counter(timed.shard_map.find(shard_hash(name)).owner for name in timed.cost)
    assert owners[timed.shard_map.find(shard_hash("team-07")).owner] <= 12


@pytest.mark.parametrize("number", [2, 5])
def test_noise_of_reconcile_times_moves_no_ranges(number: int) -> None:
    """Each namespace needs from none to twice its usual time in a minute."""
    seed = Random(number)
    timed = Timed({f"team-{place:02}": seed.choice([0.01, 0.02, 0.2]) for place in range(60)}, members(number))
    for _ in range(50):
        timed.report(1.0, seed)
        timed.plan()
    assert max(timed.shares().values()) < 1.25
    changes = 0
    for _ in range(50):
        timed.report(1.0, seed)
        changes += timed.plan()
    assert changes == 0


def test_idle_programs_are_distributed_by_objects() -> None:
    timed = Timed({f"team-{place:02}": 1e-4 if place == 7 else 1e-6 for place in range(60)}, members(3))
    for _ in range(20):
        timed.report(0.0, Random(0))
        timed.plan()
    owners = Counter(timed.shard_map.find(shard_hash(name)).owner for name in timed.cost)
    assert max(owners.values()) <= 22


def test_a_leaving_member_gives_away_all_ranges() -> None:
    load = load_of([f"team-{place:02}" for place in range(100)])
    before = settled(ShardMap.of_equal_ranges(8), members(3), load)
    after = settled(before, members(3, leaving=1), load)
    assert {each.owner for each in after.ranges} == {"u1", "u2"}


def test_ranges_of_dead_members_go_to_successors_first() -> None:
    third = HASH_SPACE // 3
    shard_map = ShardMap(
        (
            ShardRange(0, third, 1, "dead", "u1", ready=True),
            ShardRange(third, 2 * third, 1, "dead", "gone"),
            ShardRange(2 * third, HASH_SPACE, 1, "u0", "gone"),
        )
    )
    new = plan(shard_map, members(2), frozenset({"dead"}), ())
    assert new is not None
    assert [(each.owner, each.successor, each.epoch) for each in new.ranges] == [
        ("u1", "", 2),
        ("u0", "", 2),
        ("u0", "", 1),
    ]


def test_ranges_are_not_assigned_without_members() -> None:
    shard_map = ShardMap.of_equal_ranges(2)
    assert plan(shard_map, [], frozenset(), ()) is None
    assert plan(shard_map, members(1, leaving=1), frozenset(), ()) is None


@settings(max_examples=40)
@given(
    st.dictionaries(st.integers(0, HASH_SPACE - 1), st.floats(0, 100), max_size=40),
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=4),
)
def test_planner_terminates_and_satisfies_invariants(load: dict[int, float], changes: list[tuple[int, int]]) -> None:
    shard_map = ShardMap.of_equal_ranges(4)
    points = sorted(load.items())
    for number, leaving in changes:
        alive = members(number, leaving=min(leaving, number - 1))
        dead = frozenset(each.owner for each in shard_map.ranges if each.owner) - {each.uid for each in alive}
        shard_map = settled(shard_map, alive, points, dead)
        assert {each.owner for each in shard_map.ranges} <= {each.uid for each in alive if not each.leaving}


def test_a_summary_keeps_the_sum() -> None:
    load = {shard_hash(str(number)): float(number % 7) for number in range(1000)}
    points = summarized_load(load, 64)
    assert len(points) <= 65
    assert sum(weight for _, weight in points) == sum(load.values())
    assert points == sorted(points)
    assert summarized_load({5: 1.0, 2: 3.0}, 64) == [(2, 3.0), (5, 1.0)]
