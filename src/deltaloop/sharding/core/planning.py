"""Decide the cuts and owners of the map.

Ranges are cut at quantiles of the observed load. Equal ranges would be uneven: the high bits of FNV-1a depend little on
the last characters of a name, so the names ``team-00`` to ``team-99`` are in one of 64 equal ranges.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final

from deltaloop.api.shard_selector import HASH_SPACE
from deltaloop.sharding.core.membership import MemberLease
from deltaloop.sharding.core.shard_map import ShardMap, ShardRange

RANGES_PER_MEMBER: Final = 8
_MOST_RANGES: Final = 1024
_UNEVEN: Final = 1.2
"""Load of a range divided by the mean above which the range is split."""
_TOLERANCE: Final = 0.1
"""Difference of two members' loads, relative to the mean load of a member, that causes no move."""

Load = Sequence[tuple[int, float]]
"""Pairs of a hash and its load in ascending order of the hash."""


def merged_load(loads: Iterable[Load]) -> list[tuple[int, float]]:
    """Return the load of several members."""
    total: dict[int, float] = {}
    for load in loads:
        for number, weight in load:
            total[number] = total.get(number, 0.0) + weight
    return sorted(total.items())


def summarized_load(load: Mapping[int, float], most: int) -> list[tuple[int, float]]:
    """Return a load with a limited number of points: adjacent hashes share one point."""
    points = sorted(load.items())
    if len(points) <= most:
        return points
    share = sum(load.values()) / most
    found: list[tuple[int, float]] = []
    collected = 0.0
    for number, weight in points:
        collected += weight
        if collected >= share:
            found.append((number, collected))
            collected = 0.0
    if collected:
        found.append((points[-1][0], collected))
    return found


def plan(shard_map: ShardMap, members: Collection[MemberLease], dead: Collection[str], load: Load) -> ShardMap | None:
    """Return the next map, or None if nothing has to change.

    ``members`` are alive, and ``dead`` are former owners. Each call is one step: dead owners, then cuts, then moves.
    """
    staying = sorted(each.uid for each in members if not each.leaving)
    if not staying:
        return None
    new = _without_dead(shard_map, staying, dead, load)
    if new == shard_map:
        new = _cut(shard_map, len(staying), load)
    if new == shard_map:
        new = _balanced(shard_map, staying, load)
    return None if new == shard_map else new


def _weights(ranges: Sequence[ShardRange], load: Load) -> list[float]:
    """Return the load of each range. A small share is for ranges without load, so that they are spread, too."""
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


def _cut(shard_map: ShardMap, members: int, load: Load) -> ShardMap:
    """Split ranges with much load at its quantiles, and merge neighbors with little load."""
    if not load or any(each.successor for each in shard_map.ranges):
        return shard_map
    number = min(_MOST_RANGES, RANGES_PER_MEMBER * 2 ** math.ceil(math.log2(members)), len(load))
    mean = sum(weight for _, weight in load) / number
    weights = _weights(shard_map.ranges, load)
    if not mean or (max(weights) <= _UNEVEN * mean and len(weights) <= 2 * number):
        return shard_map
    pieces: list[tuple[ShardRange, float]] = []
    for each, weight in zip(shard_map.ranges, weights, strict=True):
        pieces += _split(each, load, mean) if weight > _UNEVEN * mean else [(each, weight)]
    merged: list[tuple[ShardRange, float]] = []
    for each, weight in pieces:
        if merged:
            last, before = merged[-1]
            if last.owner == each.owner and before + weight <= mean:
                epoch = max(last.epoch, each.epoch)
                merged[-1] = ShardRange(last.start, each.end, epoch, last.owner), before + weight
                continue
        merged.append((each, weight))
    return ShardMap(tuple(each for each, _ in merged))


def _split(each: ShardRange, load: Load, mean: float) -> list[tuple[ShardRange, float]]:
    numbers = [number for number, _ in load]
    points = load[bisect_left(numbers, each.start) : bisect_left(numbers, each.end)]
    total = sum(weight for _, weight in points)
    parts = min(max(2, round(total / mean)), len(points))
    found: list[tuple[ShardRange, float]] = []
    start, collected, left = each.start, 0.0, total
    for number, weight in points:
        wanted = left / (parts - len(found))
        if collected and len(found) < parts - 1 and collected + weight / 2 > wanted:
            found.append((ShardRange(start, number, each.epoch, each.owner), collected))
            start, left, collected = number, left - collected, 0.0
        collected += weight
    found.append((ShardRange(start, each.end, each.epoch, each.owner), collected))
    return found


def _balanced(shard_map: ShardMap, staying: Sequence[str], load: Load) -> ShardMap:
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
    while True:
        most = max(staying, key=lambda uid: (burden[uid], uid))
        least = min(staying, key=lambda uid: (burden[uid], uid))
        difference = burden[most] - burden[least]
        if difference <= _TOLERANCE * mean:
            break
        movable = [place for place, each in enumerate(ranges) if each.owner == most and not each.successor]
        fitting = [place for place in movable if weights[place] < difference]
        if not fitting:
            break
        place = min(fitting, key=lambda place: (abs(weights[place] - difference / 2), place))
        ranges[place] = ranges[place].moving_to(least)
        burden[most] -= weights[place]
        burden[least] += weights[place]
    return ShardMap(tuple(ranges))
