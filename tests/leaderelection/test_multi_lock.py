"""Moving from one kind of lock to another: old, combined and new candidates side by side, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from deltaloop.api.errors import InvalidInputError
from deltaloop.api.kinds import CONFIG_MAP
from deltaloop.api.status import ConflictError
from deltaloop.leaderelection import (
    UNKNOWN_LEADER,
    ConfigMapLock,
    LeaderElectionRecord,
    LeaderElector,
    LeaseLock,
    Lock,
    MultiLock,
)
from tests.leaderelection.fake_server import FakeClient, FakeServer, WallClock

RECORD = LeaderElectionRecord(holder_identity="a", lease_duration_seconds=15)


def now() -> float:
    return asyncio.get_running_loop().time()


class SharedCounter(FakeServer):
    """The server's other kind: versions come from one counter."""

    def __init__(self, first: FakeServer) -> None:
        super().__init__()
        self.first = first

    def next_version(self) -> str:
        self.version = int(self.first.next_version())
        return str(self.version)


@dataclass
class Place:
    maps: FakeServer = field(default_factory=lambda: FakeServer(kind=CONFIG_MAP))

    def __post_init__(self) -> None:
        self.leases = SharedCounter(self.maps)

    def old(self, identity: str) -> ConfigMapLock:
        return ConfigMapLock(FakeClient(self.maps), namespace="default", name="example", identity=identity)

    def new(self, identity: str) -> LeaseLock:
        return LeaseLock(FakeClient(self.leases), namespace="default", name="example", identity=identity)

    def both(self, identity: str) -> MultiLock:
        return MultiLock(self.old(identity), self.new(identity))


async def test_both_are_created_read_and_updated() -> None:
    place = Place()
    lock = place.both("a")
    assert await lock.get(timeout=1) is None
    created = await lock.create(RECORD, timeout=1)
    assert created == await lock.get(timeout=1)
    assert (created.version, created.fencing_token) == ("1,2", "2")
    updated = await lock.update(RECORD, created.version, timeout=1)
    assert updated.version == "3,4"
    assert lock.describe() == "default/example"
    assert lock.identity == "a"


@pytest.mark.parametrize("there", ["old", "new"])
async def test_the_one_that_is_missing_is_created(there: str) -> None:
    place = Place()
    await (place.old("a") if there == "old" else place.new("a")).create(RECORD, timeout=1)
    lock = place.both("a")
    state = await lock.get(timeout=1)
    assert state is not None
    assert state.version == ("1," if there == "old" else ",1")
    assert (await lock.update(RECORD, state.version, timeout=1)).record == RECORD


async def test_a_change_of_either_is_a_conflict() -> None:
    place = Place()
    lock = place.both("a")
    for server in (place.maps, place.leases):
        state = await lock.get(timeout=1) or await lock.create(RECORD, timeout=1)
        server.edit(lambda fields: fields["metadata"].update(labels={"x": "y"}))
        with pytest.raises(ConflictError):
            await lock.update(RECORD, state.version, timeout=1)


async def test_different_holders_are_unknown() -> None:
    place = Place()
    await place.old("a").create(RECORD, timeout=1)
    await place.new("b").create(LeaderElectionRecord(holder_identity="b"), timeout=1)
    state = await place.both("a").get(timeout=1)
    assert state is not None
    assert state.record.holder_identity == UNKNOWN_LEADER


def test_one_identity_for_both() -> None:
    place = Place()
    with pytest.raises(InvalidInputError, match="one identity"):
        MultiLock(place.old("a"), place.new("b"))


async def test_a_move_in_three_steps_never_has_two_leaders_and_tokens_grow() -> None:
    place = Place()
    bodies: set[str] = set()
    history: list[tuple[str, int]] = []

    def candidate(make: Callable[[str], Lock], identity: str) -> asyncio.Task[None]:
        elector = LeaderElector(make(identity), clock=now, wall_clock=WallClock(), chance=lambda: 0.0)

        async def lead() -> None:
            async for term in elector.terms():
                async with term:
                    bodies.add(identity)
                    history.append((identity, int(term.fencing_token)))
                    try:
                        await asyncio.sleep(10_000)
                    finally:
                        bodies.discard(identity)

        return asyncio.create_task(lead())

    async def replace(task: asyncio.Task[None], make: Callable[[str], Lock], identity: str) -> asyncio.Task[None]:
        task.cancel()
        await asyncio.wait([task])
        successor = candidate(make, identity)
        for _ in range(200):
            await asyncio.sleep(0.5)
            assert len(bodies) <= 1
        return successor

    tasks = [candidate(place.old, "old-1"), candidate(place.old, "old-2")]
    await asyncio.sleep(5)
    for make, kind in ((place.both, "both"), (place.new, "new")):
        for index in range(2):
            tasks[index] = await replace(tasks[index], make, f"{kind}-{index + 1}")
            assert bodies
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert [token for _, token in history] == sorted(token for _, token in history)
    assert {identity.partition("-")[0] for identity, _ in history} == {"old", "both", "new"}
