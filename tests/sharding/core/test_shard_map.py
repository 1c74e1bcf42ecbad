"""The stored form of the map, and its lookup."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from deltaloop.api.shard_selector import HASH_SPACE
from deltaloop.sharding.core.key_ranges import KeyRanges
from deltaloop.sharding.core.shard_map import InvalidShardMapError, ShardMap, ShardRange

HALF = HASH_SPACE // 2
MAP = ShardMap((ShardRange(0, HALF, 3, "u0", "u1", ready=True), ShardRange(HALF, HASH_SPACE, 1, "u1")))


def test_a_map_survives_its_stored_form() -> None:
    assert MAP.encode() == ('{"ranges":[["0000000000000000",3,"u0","u1",true],["8000000000000000",1,"u1","",false]]}')
    assert ShardMap.decode(MAP.encode()) == MAP


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"ranges":[]}',
        '{"ranges":[["0000000000000001",0,"","",false]]}',
        '{"ranges":[["0000000000000000",0,"","",false],["0000000000000000",0,"","",false]]}',
        '{"ranges":[["0",0,"","",false],["8",0,"","",false],["4",0,"","",false]]}',
        '{"ranges":[["0",0,"","",false],["10000000000000000",0,"","",false]]}',
        '{"ranges":[["x",0,"","",false]]}',
        '{"ranges":[["0",0,"",""]]}',
    ],
)
def test_invalid_maps_are_rejected(text: str) -> None:
    with pytest.raises(InvalidShardMapError) as caught:
        ShardMap.decode(text)
    assert caught.value.problem


def test_each_hash_has_a_range() -> None:
    assert [MAP.find(number).owner for number in (0, HALF - 1, HALF, HASH_SPACE - 1)] == ["u0", "u0", "u1", "u1"]
    equal = ShardMap.of_equal_ranges(3)
    assert [each.start for each in equal.ranges] == [0, HASH_SPACE // 3, HASH_SPACE * 2 // 3]
    assert ShardMap.decode(equal.encode()) == equal


def test_common_hashes_are_in_both_sets() -> None:
    sets = [KeyRanges(zip(cuts[::2], cuts[1::2], strict=True)) for cuts in combinations(range(6), 4)]
    for one, other in product([*sets, KeyRanges()], repeat=2):
        common = one.common(other)
        assert [number in common for number in range(6)] == [number in one and number in other for number in range(6)]
