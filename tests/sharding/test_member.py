"""Driver of one member, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from deltaloop.api import kinds
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.sharding import ShardMember, ShardOptions
from deltaloop.sharding.core.key_ranges import KeyRanges
from deltaloop.sharding.objects import SHARDS_LABEL
from tests.runtime.worlds import CM, World, now, until, world

ELECTION = LeaderElectionConfig(lease_duration=5.0, renew_deadline=3.5, retry_period=2.0, renew_in_thread=False)


class SlowCaches:
    """Work whose caches need 3 s for each change."""

    def __init__(self) -> None:
        self.began: list[KeyRanges] = []
        self.ended: list[KeyRanges] = []
        self.number = 1

    async def hold(self, ranges: KeyRanges) -> None:
        self.began.append(ranges)
        await asyncio.sleep(3.0)
        self.ended.append(ranges)

    def is_running(self, is_in: Callable[[str], bool]) -> bool:
        return False

    def interrupt(self, is_in: Callable[[str], bool]) -> None:
        pass

    def forget(self, is_in: Callable[[str], bool]) -> None:
        pass

    def queue(self, is_in: Callable[[str], bool]) -> None:
        pass

    def reached(self) -> int:
        return 0

    def queue_keys(self, keys: list[str]) -> None:
        pass

    def objects(self) -> Mapping[int, float]:
        return {1: self.number}


@asynccontextmanager
async def working(w: World, caches: SlowCaches, clock: Callable[[], float]) -> AsyncGenerator[ShardMember]:
    """Run one member until it works in all ranges, and in the block."""
    options = ShardOptions(name="maps", namespace="default", election=ELECTION)
    async with ShardMember(w.client, options, identity="one", clock=clock, random=lambda: 0.5) as member:

        async def work() -> None:
            async for term in member.elector.terms():
                async with member.joined(term, caches):
                    await asyncio.sleep(60.0)

        task = asyncio.create_task(work())
        await until(lambda: bool(member.state.own) and all(each.is_working for each in member.state.own))
        yield member
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_change_of_the_caches_ends_before_the_next_one() -> None:
    caches = SlowCaches()
    async with world() as w, working(w, caches, now):
        assert len(caches.began) > 1
        assert caches.ended == caches.began


async def test_a_member_that_was_suspended_writes_no_report() -> None:
    caches, suspended = SlowCaches(), 0.0
    async with world() as w, working(w, caches, lambda: now() + suspended) as member:
        await asyncio.sleep(1.1)
        before = await w.client.get(CM, member.options.map_name, namespace="default")
        caches.number, suspended = 100, 30.0
        event: dict[str, Any] = {
            "metadata": {"name": "other", "labels": {SHARDS_LABEL: "maps"}},
            "spec": {"holderIdentity": "other"},
        }
        await w.client.create(kinds.LEASE, event, namespace="default")
        await asyncio.sleep(0.1)
        after = await w.client.get(CM, member.options.map_name, namespace="default")
        assert after.resource_version == before.resource_version
