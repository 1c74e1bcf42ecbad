"""Times without an owner."""

from __future__ import annotations

from deltaloop.sharding.core.ownership import Ownership
from deltaloop.sharding.core.shard_map import ShardMap

MAP = ShardMap(tuple(each.given_to("u0") for each in ShardMap.of_equal_ranges(2).ranges))


def test_time_without_an_owner_begins_at_the_last_renewal() -> None:
    crashed = Ownership(20.0)
    crashed.saw(MAP, {"u0"}, {}, 100.0)
    assert crashed.unowned_for(0, 100.0) is None
    crashed.saw(MAP, set[str](), {"u0": 15.0}, 116.0)
    crashed.saw(MAP, set[str](), {}, 118.0)  # the Lease was deleted
    assert crashed.unowned_for(0, 121.0) == 20.0
    missing = Ownership(20.0)  # a member without a Lease can work until its renew deadline
    missing.saw(MAP, set[str](), {}, 116.0)
    assert missing.unowned_for(0, 121.0) == 5.0
