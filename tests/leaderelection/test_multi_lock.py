"""Moving from one kind of lock to another: old, combined and new candidates side by side, in virtual time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kinds import CONFIG_MAP
from deltaloop.api.resource import Resource
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
from tests.having import having
from tests.leaderelection.fake_server import FakeClient, FakeServer, WallClock
from tests.leaderelection.test_lock import Recorder

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


async def test_both_locks_are_created_read_and_updated() -> None:
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
async def test_missing_lock_is_created(there: str) -> None:
    place = Place()
    await (place.old("a") if there == "old" else place.new("a")).create(RECORD, timeout=1)
    lock = place.both("a")
    state = await lock.get(timeout=1)
    assert state is not None
    assert state.version == ("1," if there == "old" else ",1")
    assert (await lock.update(RECORD, state.version, timeout=1)).record == RECORD


async def test_update_uses_versions_returned_by_create() -> None:
    """The next write needs the version that the one before has given, in both."""
    place = Place()
    await place.old("a").create(RECORD, timeout=1)
    lock = place.both("a")
    state = await lock.get(timeout=1)
    assert state is not None
    written = await lock.update(RECORD, state.version, timeout=1)
    assert written == await lock.get(timeout=1)
    assert (await lock.update(RECORD, written.version, timeout=1)).version == "4,5"


async def test_calls_use_given_timeout() -> None:
    limits = list[float | None]()

    class Watched(FakeClient):
        async def _perform(self, verb: str, carry_out: Callable[[], Resource], timeout: float | None) -> Resource:
            limits.append(timeout)
            return await super()._perform(verb, carry_out, timeout)

    place = Place()
    lock = MultiLock(
        ConfigMapLock(Watched(place.maps), namespace="default", name="example", identity="a"),
        LeaseLock(Watched(place.leases), namespace="default", name="example", identity="a"),
    )
    await lock.get(timeout=1)
    created = await lock.create(RECORD, timeout=2)
    await lock.update(RECORD, created.version, timeout=3)
    del place.maps.leases["default/example"]
    state = await lock.get(timeout=4)
    assert state is not None
    await lock.update(RECORD, state.version, timeout=5)
    assert limits == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_events_cover_both_locks_and_client_is_from_primary() -> None:
    place, events = Place(), Recorder()
    client = FakeClient(place.maps)
    old = ConfigMapLock(client, namespace="default", name="example", identity="a", recorder=events)
    new = LeaseLock(FakeClient(place.leases), namespace="default", name="example", identity="a", recorder=events)
    lock = MultiLock(old, new)
    lock.record_event("became leader")
    assert [(about.kind, message) for about, _, _, message in events.events] == [
        ("ConfigMap", "a became leader"),
        ("Lease", "a became leader"),
    ]
    assert lock.client is client
    assert repr(lock) == "<MultiLock of <ConfigMapLock default/example for a> and <LeaseLock default/example for a>>"


class Movable:
    """A lock that can be used over another connection, or says that it cannot."""

    def __init__(self, lock: Lock, *, moves: bool) -> None:
        self.lock = lock
        self.moves = moves
        self.open = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lock, name)

    def on_own_connection(self) -> AbstractAsyncContextManager[Lock] | None:
        return self._moved() if self.moves else None

    @asynccontextmanager
    async def _moved(self) -> AsyncGenerator[Lock, None]:
        self.open = True
        yield self.lock
        self.open = False


@pytest.mark.parametrize("first", ["moves", "does not", "cannot"])
@pytest.mark.parametrize("second", ["moves", "does not", "cannot"])
async def test_locks_move_to_separate_connection_together(first: str, second: str) -> None:
    place = Place()
    old, new = place.old("a"), place.new("a")
    parts: list[Any] = [
        lock if says == "cannot" else Movable(lock, moves=says == "moves")
        for lock, says in ((Plain(old), first), (Plain(new), second))
    ]
    moved = MultiLock(*parts).on_own_connection()
    assert (moved is not None) == (first == second == "moves")
    if moved is not None:
        async with moved as lock:
            assert (lock.primary, lock.secondary) == (parts[0].lock, parts[1].lock)
            assert parts[0].open
            assert parts[1].open
        assert not parts[0].open
        assert not parts[1].open


class Plain:
    """A lock of a user's own, which knows of no other connections."""

    def __init__(self, lock: Lock) -> None:
        self.identity = lock.identity
        self.get, self.create, self.update = lock.get, lock.create, lock.update
        self.describe, self.record_event = lock.describe, lock.record_event


async def test_lock_without_separate_connection_is_renewed_on_main_loop() -> None:
    place = Place()
    locks: list[Any] = [Plain(place.new("a")), Movable(place.new("a"), moves=False)]
    for lock in locks:
        before = threading.active_count()
        elector = LeaderElector(lock, clock=now, wall_clock=WallClock(), random=lambda: 0.0)
        async with await elector.acquire() as term:
            assert threading.active_count() == before
            await asyncio.sleep(30)
            assert term.is_leading


async def test_change_of_either_lock_is_a_conflict() -> None:
    place = Place()
    lock = place.both("a")
    for server in (place.maps, place.leases):
        state = await lock.get(timeout=1) or await lock.create(RECORD, timeout=1)
        server.edit(lambda fields: fields["metadata"].update(labels={"x": "y"}))
        with pytest.raises(ConflictError):
            await lock.update(RECORD, state.version, timeout=1)


async def test_different_holders_have_unknown_leader() -> None:
    place = Place()
    await place.old("a").create(RECORD, timeout=1)
    await place.new("b").create(LeaderElectionRecord(holder_identity="b"), timeout=1)
    state = await place.both("a").get(timeout=1)
    assert state is not None
    assert state.record.holder_identity == UNKNOWN_LEADER


def test_both_locks_need_same_identity() -> None:
    place = Place()
    with pytest.raises(InvalidArgumentError, check=having(argument="identity")):
        MultiLock(place.old("a"), place.new("b"))


async def test_three_step_migration_has_one_leader_and_increasing_tokens() -> None:
    place = Place()
    bodies: set[str] = set()
    history: list[tuple[str, int]] = []

    def candidate(make: Callable[[str], Lock], identity: str) -> asyncio.Task[None]:
        elector = LeaderElector(make(identity), clock=now, wall_clock=WallClock(), random=lambda: 0.0)

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
