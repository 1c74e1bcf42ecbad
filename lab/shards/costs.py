"""``python -m lab.shards.costs``: CPU time that members of a large program need for each other, and their efficiency.

Each renewal of a member is an event for all members. The program measures the work that follows from one event, for a
member and for the coordinator, with the maps and reports of many members.
"""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import deltaloop as dl
from deltaloop.api.kinds import CONFIG_MAP, LEASE
from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import shard_hash
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.runtime.program.shards import MemberWork
from deltaloop.sharding import ShardMember, ShardOptions
from deltaloop.sharding.core.key_ranges import KeyRanges
from deltaloop.sharding.core.membership import MemberLease
from deltaloop.sharding.core.planning import Report, plan
from deltaloop.sharding.core.shard_map import ShardMap
from deltaloop.sharding.objects import new_map, report_patch

OPTIONS = ShardOptions(name="costs", namespace="default")
RENEWALS = 1 / LeaderElectionConfig().retry_period
RENEWAL = 0.002
"""CPU time in seconds of one renewal (docs/project/performance.md)."""
NAMESPACES = 10_000
_POINTS = 2048


def lease(place: int, version: int) -> Resource:
    spec = {"holderIdentity": f"m{place}", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    metadata = {"name": f"costs-member-{place}", "namespace": "default", "uid": uid(place)}
    return Resource.from_dict({"metadata": {**metadata, "resourceVersion": f"{version}"}, "spec": spec}, LEASE)


def uid(place: int) -> str:
    return f"00000000-0000-4000-8000-{place:012}"


def stored_map(members: int) -> tuple[Resource, float]:
    """Return the ConfigMap of a program at rest, and the largest share divided by the mean."""
    load = sorted((shard_hash(f"tenant-{place}"), 1.0) for place in range(NAMESPACES))
    alive = [MemberLease(f"l{place}", uid(place), "1", 15.0) for place in range(members)]
    shard_map = ShardMap.of_equal_ranges(64)
    while (new := plan(shard_map, alive, frozenset(), load)) is not None:
        shard_map = ShardMap(tuple(each.given_to(each.successor) if each.successor else each for each in new.ranges))
    fields = new_map(OPTIONS, shard_map.encode(), None, reporters=frozenset())
    fields["metadata"] |= {"uid": "map", "resourceVersion": "1"}
    shares: dict[str, int] = {}
    for place in range(members):
        held = KeyRanges((each.start, each.end) for each in shard_map.ranges if each.owner == uid(place))
        most = min(max(32, _POINTS // members), 256)
        report = Report.of(held, dict(load), most, [each.start for each in shard_map.ranges])
        fields["data"] |= report_patch(uid(place), report)["data"]
        shares[uid(place)] = sum(number in held for number, _ in load)
    return Resource.from_dict(fields, CONFIG_MAP), max(shares.values()) * members / NAMESPACES


async def event(members: int, place: int, found: Resource) -> float:
    """Return the CPU time in seconds of a member after the renewal of another."""
    leases = [lease(each, 1) for each in range(members)]
    async with dl.Client(dl.ClientConfig(server="http://127.0.0.1:1")) as client:
        member = ShardMember(client, OPTIONS, identity=f"m{place}", clock=time.monotonic)
        known: Any = member
        known._leases = SimpleNamespace(indexer=SimpleNamespace(list=lambda: leases))
        known._maps = SimpleNamespace(indexer=SimpleNamespace(list=lambda: [found]), has_synced=True)
        known._member.uid = uid(place)
        work = MemberWork(member.share, time.monotonic)
        known._see()
        held = KeyRanges((each.start, each.end) for each in known._member.held)
        rounds = 20
        began = time.process_time()
        for number in range(rounds):
            other = (place + 1 + number) % members
            leases[other] = lease(other, 2 + number)
            known._see()
            known._share_out(work, held)
            await known._advance()
        return (time.process_time() - began) / rounds


async def main() -> None:
    print("members  member's event  coordinator's event  overhead of a member  largest share  efficiency")
    for members in (2, 8, 16, 32, 64):
        found, share = stored_map(members)
        mine, coordinators = await event(members, 1, found), await event(members, 0, found)
        overhead = RENEWALS * (RENEWAL + (members - 1) * mine)
        print(
            f"{members:7} {mine * 1e3:12.2f} ms {coordinators * 1e3:17.2f} ms {overhead:20.1%} {share:16.2f} "
            f"{(1 - overhead) / share:11.2f}"
        )


if __name__ == "__main__":
    asyncio.run(main())
