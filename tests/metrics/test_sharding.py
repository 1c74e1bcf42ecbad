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
    own = RangeState(0, 1, 0, "a", "", is_own=True, is_working=True, unowned_for=None)
    lost = RangeState(1, 2, 0, "", "", is_own=False, is_working=False, unowned_for=30.0)
    metrics.state = lambda: ShardState("maps", "a", ("a", "b"), (own, lost), (lost,))
    assert registry.get_sample_value("deltaloop_shard_ranges", name) == 1
    assert registry.get_sample_value("deltaloop_shard_members", name) == 2
    assert registry.get_sample_value("deltaloop_shard_ranges_without_owner", name) == 1


def test_samples_name_the_owned_ranges_and_at_most_ten_without_an_owner() -> None:
    registry = CollectorRegistry()
    metrics = ShardMetrics(registry=registry)
    own = RangeState(255, 256, 3, "a", "", is_own=True, is_working=True, unowned_for=None)
    lost = tuple(
        RangeState(at, at + 1, 0, "", "", is_own=False, is_working=False, unowned_for=30.0) for at in range(12)
    )
    metrics.state = lambda: ShardState("maps", "a", ("a",), (*lost, own), lost)
    labels = {"name": "maps", "range": "00000000000000ff"}
    assert registry.get_sample_value("deltaloop_shard_range_epoch", labels) == 3
    times = "deltaloop_shard_range_without_owner_seconds"
    samples = [each for family in registry.collect() for each in family.samples if each.name == times]
    assert [each.labels["range"] for each in samples] == [each.name for each in lost[:10]]
    assert {each.value for each in samples} == {30.0}
    metrics.state = lambda: ShardState("maps", "a", ("a",), (*lost,), ())
    assert registry.get_sample_value("deltaloop_shard_range_epoch", labels) is None
