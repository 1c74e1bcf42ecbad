"""Metrics of a sharded program."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from deltaloop.metrics.sharding import ShardMetrics
from deltaloop.sharding import RangeState, ShardState


def test_a_scrape_shows_the_ranges_of_the_member_and_those_without_an_owner() -> None:
    registry = CollectorRegistry()
    metrics = ShardMetrics(registry=registry)
    name = {"name": "maps"}
    assert registry.get_sample_value("deltaloop_shard_ranges", name) is None
    own = RangeState(0, 1, 3, "a", "", is_own=True, is_working=True, unowned_for=None)
    lost = RangeState(1, 2, 0, "", "", is_own=False, is_working=False, unowned_for=30.0)
    metrics.state = lambda: ShardState("maps", "a", ("a", "b"), (own, lost), (lost,))
    assert registry.get_sample_value("deltaloop_shard_ranges", name) == 1
    assert registry.get_sample_value("deltaloop_shard_members", name) == 2
    assert registry.get_sample_value("deltaloop_shard_ranges_without_owner", name) == 1
    ranges = [{**name, "range": each.name} for each in (own, lost)]
    assert [registry.get_sample_value("deltaloop_shard_range_epoch", each) for each in ranges] == [3, None]
    assert [registry.get_sample_value("deltaloop_shard_range_unowned_seconds", each) for each in ranges] == [None, 30]
    many = (lost,) * 12
    metrics.state = lambda: ShardState("maps", "a", ("a",), (own, *many), many)
    found = [each for family in registry.collect() for each in family.samples if each.name.endswith("unowned_seconds")]
    assert len(found) == 10
