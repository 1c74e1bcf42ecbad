"""Decide the cuts and owners of the map."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Final

import msgspec

from deltaloop.api.shard_selector import HASH_SPACE
from deltaloop.sharding.core.key_ranges import KeyRanges
from deltaloop.sharding.core.membership import MemberLease
from deltaloop.sharding.core.shard_map import ShardMap, ShardRange

RANGES_PER_MEMBER: Final = 8
_MOST_RANGES: Final = 1024
_MOST_MOVES: Final = 4096
_UNEVEN: Final = 1.1
"""Load of a range divided by the mean above which the range is split."""
_EVEN: Final = 1.2  # largest range divided by the mean, without a finer cut
_GAIN: Final = 0.1  # decrease of this quotient that justifies new cuts
_MANY: Final = 768  # number of ranges that are joined again
_LEAST: Final = 1e-3  # load without cuts
_TOLERANCE: Final = 0.1
"""Difference of two members' loads, relative to the mean load of a member, that causes no move."""
_NOISE: Final = 0.2  # further difference that causes no move and no cut, if all of the load is by reconcile time
_MOST_BY_TIME: Final = 0.9  # memory follows the objects
_BUSY: Final = 0.1  # seconds of reconciles in a second of one member at which half of this part is by time

Load = Sequence[tuple[int, float]]
"""Pairs of a hash and its load in ascending order of the hash."""


class Report(msgspec.Struct, frozen=True, array_like=True):
    """Load of one member, with hashes as hexadecimal text, because JSON numbers are too small.

    Attributes:
        ranges: Ranges in which the caches of the member are complete.
        points: Hashes, their objects, and their seconds of reconciles in a second.
    """

    ranges: list[tuple[str, str]]
    points: list[tuple[str, float, float]]

    @classmethod
    def of(
        cls,
        held: KeyRanges,
        objects: Mapping[int, float],
        most: int,
        starts: Sequence[int] = (),
        *,
        rates: Mapping[int, float] | None = None,
    ) -> Report:
        """Report the load in ``held`` with a limited number of points."""
        points = summarized_load({number: each for number, each in objects.items() if number in held}, most, starts)
        numbers = [number for number, _ in points]
        times = [0.0] * len(points)
        for number, rate in (rates or {}).items():
            if number in held and numbers:
                times[min(bisect_left(numbers, number), len(numbers) - 1)] += rate
        return cls(
            [(f"{start:x}", f"{end:x}") for start, end in held.bounds],
            [
                (f"{number:x}", round(each, 3), float(f"{time:.3g}"))
                for (number, each), time in zip(points, times, strict=True)
            ],
        )

    @property
    def held(self) -> KeyRanges:
        return KeyRanges((int(start, 16), int(end, 16)) for start, end in self.ranges)

    @property
    def load(self) -> list[tuple[int, float, float]]:
        return sorted((int(number, 16), objects, rate) for number, objects, rate in self.points)

    def distance(self, other: Report) -> float:
        """Return the part of the load that differs, from 0 to 2."""
        rate = max(sum(rate for *_, rate in report.points) for report in (self, other))
        objects = _distance(*({number: each for number, each, _ in report.points} for report in (self, other)))
        times = _distance(*({number: each for number, _, each in report.points} for report in (self, other)))
        return max(objects, _part_by_time(rate, 1) * times)


def _distance(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    total = max(sum(one.values()), sum(other.values())) or 1.0
    return sum(abs(one.get(each, 0.0) - other.get(each, 0.0)) for each in {*one, *other}) / total


def _part_by_time(rate: float, members: int) -> float:
    return _MOST_BY_TIME * rate / (rate + _BUSY * members)


class CombinedLoad(msgspec.Struct, frozen=True):
    """Load in the reports of all members.

    Attributes:
        points: Hashes and their load. Its sum is the number of objects.
        rates: Hashes and their seconds of reconciles in a second.
        by_time: Part of the load that follows the reconcile time.
        covered: True if the reports cover all ranges.
        exact: True if each owner has reported its ranges, so that cuts do not change the load.
    """

    points: list[tuple[int, float]]
    rates: list[tuple[int, float]]
    by_time: float
    covered: bool
    exact: bool


def combined_load(shard_map: ShardMap, reports: Mapping[str, Report]) -> CombinedLoad:
    """Return the load of all ranges.

    The report of an earlier owner of a range applies until the owner has reported.
    """
    known = {uid: (report.held, report.load) for uid, report in reports.items()}
    found: list[tuple[int, float, float]] = []
    covered = exact = True
    for each in shard_map.ranges:
        order = sorted(known, key=lambda uid: (uid != each.owner, uid))
        source = next((uid for uid in order if known[uid][0].covers(each.start, each.end)), None)
        if source is None:
            covered = exact = False
            continue
        exact = exact and source == each.owner
        load = known[source][1]
        first, after = (bisect_left(load, (bound, 0.0, 0.0)) for bound in (each.start, each.end))
        found += load[first:after]
    objects, rate = sum(each for _, each, _ in found), sum(each for *_, each in found)
    members = len({each.owner for each in shard_map.ranges})
    part = _part_by_time(rate, members) if rate and objects else 0.0
    scale = part * objects / rate if rate else 0.0
    points = [(number, (1 - part) * each + scale * time) for number, each, time in found]
    return CombinedLoad(points, [(number, time) for number, _, time in found if time], part, covered, exact)


def summarized_load(load: Mapping[int, float], most: int, starts: Sequence[int] = ()) -> list[tuple[int, float]]:
    """Return a load with a limited number of points: adjacent hashes of one range share one point."""
    points = sorted(load.items())
    if len(points) <= most:
        return points
    share = sum(load.values()) / most
    found: list[tuple[int, float]] = []
    collected, before, last = 0.0, 0, 0
    for number, weight in points:
        place = bisect_right(starts, number)
        if collected and (collected >= share or place != before):
            found.append((last, collected))
            collected = 0.0
        collected += weight
        before, last = place, number
    return [*found, (last, collected)]


def plan(
    shard_map: ShardMap,
    members: Collection[MemberLease],
    dead: Collection[str],
    load: Load,
    *,
    moves: bool = True,
    cuts: bool = True,
    by_time: float = 0.0,
) -> ShardMap | None:
    """Return the next map, or None without a change.

    ``members`` are alive, and ``dead`` are former owners. Each call is one step: dead owners, then cuts, then moves.
    Without ``moves``, only ranges of dead and leaving members change, and without ``cuts``, no bounds. Reconcile times
    vary, so ``by_time``, their part of the load, raises the differences that cause moves and cuts.
    """
    staying = sorted(each.uid for each in members if not each.leaving)
    if not staying:
        return None
    new = _without_dead(shard_map, staying, dead, load)
    if new == shard_map and moves and cuts:
        new = _cut(shard_map, len(staying), load, _NOISE * by_time)
    if new == shard_map and (moves or any(each.leaving for each in members)):
        new = _balanced(shard_map, staying, load, _NOISE * by_time)
    return None if new == shard_map else new


def _weights(ranges: Sequence[ShardRange], load: Load) -> list[float]:
    """Return the load of each range. All members also receive ranges without load."""
    numbers = [number for number, _ in load]
    sums = [0.0, *accumulate(weight for _, weight in load)]
    least = max(sums[-1], 1.0) / HASH_SPACE / 1000
    found: list[float] = []
    for each in ranges:
        first, after = bisect_left(numbers, each.start), bisect_left(numbers, each.end)
        found.append(sums[after] - sums[first] + least * (each.end - each.start))
    return found


def _burdens(ranges: Sequence[ShardRange], weights: Sequence[float], staying: Sequence[str]) -> dict[str, float]:
    """Return the load of each member after all hand-overs."""
    burden = dict.fromkeys(staying, 0.0)
    for each, weight in zip(ranges, weights, strict=True):
        holder = each.successor or each.owner
        if holder in burden:
            burden[holder] += weight
    return burden


def _without_dead(shard_map: ShardMap, staying: Sequence[str], dead: Collection[str], load: Load) -> ShardMap:
    weights = _weights(shard_map.ranges, load)
    burden = _burdens(shard_map.ranges, weights, staying)
    new: list[ShardRange] = []
    for each, weight in zip(shard_map.ranges, weights, strict=True):
        changed = each
        if not each.owner or each.owner in dead:
            holder = each.successor if each.successor in burden else min(staying, key=lambda uid: (burden[uid], uid))
            if holder != each.successor:
                burden[holder] += weight
            changed = each.given_to(holder)
        elif each.successor and each.successor not in burden:
            changed = each.moving_to("")
        new.append(changed)
    return ShardMap(tuple(new))


def _cut(shard_map: ShardMap, members: int, load: Load, noise: float) -> ShardMap:
    """Cut the ranges of each owner at the quantiles of its load, if they are uneven or too many."""
    if not load or any(each.successor for each in shard_map.ranges):
        return shard_map
    number = min(_MOST_RANGES // 2, RANGES_PER_MEMBER * 2 ** math.ceil(math.log2(members)))
    total = sum(weight for _, weight in load)
    weights = _weights(shard_map.ranges, load)
    before = _unevenness(weights)
    large = max(weights) * min(number, len(load)) > (_UNEVEN + noise) * total
    if noise and large:
        large = any(
            weight * min(number, len(load)) > (_UNEVEN + noise) * total and _divisible(each, load)
            for each, weight in zip(shard_map.ranges, weights, strict=True)
        )
    if total < _LEAST or (not large and before <= _EVEN + noise and len(weights) <= _MANY):
        return shard_map
    best, least = shard_map, math.inf if large or len(weights) > _MANY else (before - _GAIN) * (1 - noise)
    # Members can own many short runs of ranges, which only a finer cut makes as large as the others.
    while number <= _MOST_RANGES // 2:
        new = _cut_to(shard_map, weights, load, _UNEVEN * total / min(number, len(load)))
        found = _unevenness(_weights(new.ranges, load))
        if found < least and len(new.ranges) <= _MOST_RANGES:
            best, least = new, found
        if least <= _EVEN:
            break
        number *= 2
    return best


def _unevenness(weights: Sequence[float]) -> float:
    """Return the largest weight divided by the mean."""
    return max(weights) * len(weights) / sum(weights)


def _cut_to(shard_map: ShardMap, weights: Sequence[float], load: Load, most: float) -> ShardMap:
    """Cut each run of ranges of one owner into equal parts with at most a weight."""
    new: list[ShardRange] = []
    place = 0
    for owner, group in groupby(shard_map.ranges, key=lambda each: each.owner):
        neighbors = [*group]
        heights = weights[place : place + len(neighbors)]
        place += len(neighbors)
        parts = max(1, math.ceil(sum(heights) / most))
        if len(neighbors) == parts and max(heights) <= most:
            new += neighbors
        else:
            epoch = max(each.epoch for each in neighbors)
            new += _split(ShardRange(neighbors[0].start, neighbors[-1].end, epoch, owner), load, parts)
    return ShardMap(tuple(new))


def _split(each: ShardRange, load: Load, parts: int) -> list[ShardRange]:
    numbers = [number for number, _ in load]
    points = load[bisect_left(numbers, each.start) : bisect_left(numbers, each.end)]
    found: list[ShardRange] = []
    start, collected, left, last = each.start, 0.0, sum(weight for _, weight in points), each.start
    for number, weight in points:
        wanted = left / (parts - len(found))
        if collected and len(found) < parts - 1 and collected + weight / 2 > wanted:
            # A point can represent all hashes since the previous point.
            found.append(ShardRange(start, last + 1, each.epoch, each.owner))
            start, left, collected = last + 1, left - collected, 0.0
        collected += weight
        last = number
    found.append(ShardRange(start, each.end, each.epoch, each.owner))
    return found


def _divisible(each: ShardRange, load: Load) -> bool:
    numbers = [number for number, _ in load]
    return bisect_left(numbers, each.end) - bisect_left(numbers, each.start) > 1


def _balanced(shard_map: ShardMap, staying: Sequence[str], load: Load, noise: float) -> ShardMap:
    """Move ranges from leaving members, and from members with much load to members with little."""
    weights = _weights(shard_map.ranges, load)
    ranges = list(shard_map.ranges)
    burden = _burdens(ranges, weights, staying)
    for place, each in enumerate(ranges):
        if not each.successor and each.owner not in burden:
            target = min(staying, key=lambda uid: (burden[uid], uid))
            ranges[place] = each.moving_to(target)
            burden[target] += weights[place]
    mean = sum(burden.values()) / len(staying)
    if max(burden.values()) - min(burden.values()) <= (_TOLERANCE + noise) * mean:
        return ShardMap(tuple(ranges))
    for _ in range(_MOST_MOVES):
        most = max(staying, key=lambda uid: (burden[uid], uid))
        least = min(staying, key=lambda uid: (burden[uid], uid))
        difference = burden[most] - burden[least]
        if difference <= _TOLERANCE * mean:
            break
        movable = [place for place, each in enumerate(ranges) if each.owner == most and not each.successor]
        fitting = [place for place in movable if weights[place] < difference]
        place = min(
            fitting,
            key=lambda place: (
                round(abs(weights[place] - difference / 2) / (_TOLERANCE / 4 * mean)),
                -_joined(ranges, place, least),
                place,
            ),
            default=-1,
        )
        if place < 0:
            part = _part(ranges, weights, movable, load, difference / 2)
            if part is None:
                break
            place = part
        ranges[place] = ranges[place].moving_to(least)
        burden[most] -= weights[place]
        burden[least] += weights[place]
    return ShardMap(tuple(ranges))


def _joined(ranges: Sequence[ShardRange], place: int, target: str) -> int:
    """Return the number of runs of one owner that a move to the target saves."""
    beside = [ranges[other] for other in (place - 1, place + 1) if 0 <= other < len(ranges)]
    holders = [each.successor or each.owner for each in beside]
    return sum(holder == target for holder in holders) - sum(holder == ranges[place].owner for holder in holders)


def _part(
    ranges: list[ShardRange], weights: list[float], movable: Sequence[int], load: Load, wanted: float
) -> int | None:
    """Split the smallest range that has more than the wanted load, and return the place of the first part."""
    larger = [place for place in movable if weights[place] > wanted]
    if not larger or len(ranges) >= _MOST_RANGES:
        return None
    place = min(larger, key=lambda place: (weights[place], place))
    each = ranges[place]
    numbers = [number for number, _ in load]
    points = load[bisect_left(numbers, each.start) : bisect_left(numbers, each.end)]
    collected, best, cut = 0.0, weights[place], None
    for number, weight in points[:-1]:
        collected += weight
        if abs(collected - wanted) < best and number + 1 < each.end:
            best, cut = abs(collected - wanted), (number + 1, collected)
    if cut is None or best >= wanted:
        return None
    ranges[place : place + 1] = [
        ShardRange(each.start, cut[0], each.epoch, each.owner),
        ShardRange(cut[0], each.end, each.epoch, each.owner),
    ]
    weights[place : place + 1] = [cut[1], weights[place] - cut[1]]
    return place
