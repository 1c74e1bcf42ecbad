"""Cases of upstream's tests that the other files here have no reason to hold."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from deltaloop.api.status import AlreadyExistsError
from deltaloop.client.errors import TransportError
from deltaloop.leaderelection import (
    LeaderElectionConfig,
    LeaderElectionRecord,
    LeaderElector,
    LeaderHealthCheck,
    LeaseLock,
)
from deltaloop.leaderelection.core.record import lease_with_record
from deltaloop.testing import eventually
from tests.leaderelection.fake_server import FakeClient, FakeServer
from tests.leaderelection.test_elector import make

RECORD = LeaderElectionRecord(holder_identity="a", lease_duration_seconds=15)


async def test_lock_calls_propagate_server_errors() -> None:
    client = FakeClient(FakeServer())
    lock = LeaseLock(client, namespace="default", name="example", identity="a")
    state = await lock.create(RECORD, timeout=1)
    with pytest.raises(AlreadyExistsError):
        await lock.create(RECORD, timeout=1)
    client.always = "refuse"
    with pytest.raises(TransportError):
        await lock.get(timeout=1)
    with pytest.raises(TransportError):
        await lock.create(RECORD, timeout=1)
    with pytest.raises(TransportError):
        await lock.update(RECORD, state.version, timeout=1)


def test_lock_without_labels_keeps_lease_labels() -> None:
    lease = {"metadata": {"name": "example", "labels": {"theirs": "1"}}}
    assert lease_with_record(lease, RECORD)["metadata"]["labels"] == {"theirs": "1"}
    assert lease_with_record(lease, RECORD, labels={})["metadata"]["labels"] == {"theirs": "1"}


async def test_standby_is_healthy_regardless_of_lease_age() -> None:
    server = FakeServer()
    leader, _ = make(server, "a")
    term = await leader.acquire()
    standby, client = make(server, "b")
    check = LeaderHealthCheck()
    check.set_elector(standby)
    async with term:
        waiting = asyncio.create_task(standby.acquire())
        await asyncio.sleep(5)
        client.always = "refuse"  # it sees nothing of the leader's renewals any more
        await asyncio.sleep(120)
        check.check()
        waiting.cancel()
        await asyncio.wait([waiting])


@pytest.mark.real_time
async def test_health_check_runs_in_thread_during_renewals() -> None:
    client = FakeClient(FakeServer())
    lock = LeaseLock(client, namespace="default", name="example", identity="a")
    config = LeaderElectionConfig(lease_duration=2.0, renew_deadline=1.0, retry_period=0.02, renew_in_thread=False)
    elector = LeaderElector(lock, config, clock=time.monotonic)
    check = LeaderHealthCheck()
    check.set_elector(elector)
    ended, failures, checks = threading.Event(), list[Exception](), list[int]()

    def look() -> None:
        count = 0
        while not ended.is_set():
            try:
                check.check()
            except Exception as error:  # noqa: BLE001 - shown below
                failures.append(error)
            count += 1
        checks.append(count)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        async with await elector.acquire():
            await eventually(lambda: client.verbs.count("update") >= 5, every=0.02)
    finally:
        ended.set()
        await asyncio.to_thread(looking.join, 5)
    assert failures == []
    assert checks[0] > 5
