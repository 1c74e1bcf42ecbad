"""Metrics of the ranges of a sharded program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final, final

from deltaloop.metrics.collector import Family, RegisteredCollector, Sample, families_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from deltaloop.sharding import ShardState

_FAMILIES: Final = families_of("""
    gauge deltaloop_shard_members name
        Members of the sharded program that are alive
    gauge deltaloop_shard_ranges name
        Ranges of the hash space that this member owns
    gauge deltaloop_shard_ranges_without_owner name
        Ranges of the hash space that have had no owner for the lease duration and 5 s
    gauge deltaloop_shard_range_epoch name,range
        Earlier owners of a range that this member owns
    gauge deltaloop_shard_range_unowned_seconds name,range
        Time without an owner of a range that has had none for the lease duration and 5 s
""")

_MOST_UNOWNED: Final = 10  # all members report them


@final
class ShardMetrics(RegisteredCollector):
    """Collector of the ranges of a sharded program, which it reads for each scrape."""

    _what = "the metrics of shards"
    _families: ClassVar[tuple[Family, ...]] = _FAMILIES

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register the collector."""
        self.state: Callable[[], ShardState | None] = lambda: None
        super().__init__(registry=registry)

    def _samples(self) -> Iterator[Sample]:
        state = self.state()
        if state is not None:
            yield "deltaloop_shard_members", (state.name,), len(state.members)
            yield "deltaloop_shard_ranges", (state.name,), len(state.own)
            yield "deltaloop_shard_ranges_without_owner", (state.name,), len(state.unowned)
            for each in state.own:
                yield "deltaloop_shard_range_epoch", (state.name, each.name), each.epoch
            for each in state.unowned[:_MOST_UNOWNED]:
                yield "deltaloop_shard_range_unowned_seconds", (state.name, each.name), each.unowned_for or 0.0
