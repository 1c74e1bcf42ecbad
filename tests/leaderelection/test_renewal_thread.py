"""Renewals on their own thread, on the real clock: the work may block its loop for a while, but not for ever."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deltaloop.api.kinds import LEASE
from deltaloop.client import Client, connect
from deltaloop.leaderelection import (
    LAST_RESORT_EXIT_CODE,
    ConfigMapLock,
    LeaderElectionConfig,
    LeaderElector,
    LeadershipLostError,
    LeaseLock,
    Lock,
    MultiLock,
    TermEnd,
)
from tests.leaderelection.serving import serving

CONFIG = LeaderElectionConfig(lease_duration=1.5, renew_deadline=1.0, retry_period=0.25)

pytestmark = [pytest.mark.real_time]


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[dict[str, Any]]:
    with serving() as config:
        yield config


def lock_of(client: Client, name: str, identity: str = "a") -> LeaseLock:
    return LeaseLock(client, namespace="default", name=name, identity=identity)


def election_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("deltaloop-election")]


async def test_a_loop_that_is_blocked_for_a_while_keeps_the_lease(kubeconfig: dict[str, Any]) -> None:
    async with connect(kubeconfig=kubeconfig) as client:
        elector = LeaderElector(lock_of(client, "slow"), CONFIG)
        term = await elector.win()
        async with term:
            assert election_threads() == ["deltaloop-election-default/slow"]
            before = (await client.get(LEASE, "slow", namespace="default"))["spec"]["renewTime"]
            for _ in range(3):
                time.sleep(0.8)  # noqa: ASYNC251, TID251 - blocking is the point
                assert term.is_leading
                await asyncio.sleep(0.1)
            assert (await client.get(LEASE, "slow", namespace="default"))["spec"]["renewTime"] > before
        assert term.ended_because is TermEnd.COMPLETED
        assert election_threads() == []
        assert (await client.get(LEASE, "slow", namespace="default"))["spec"]["holderIdentity"] == ""


async def test_a_wedged_leader_is_named_and_loses_the_lease(
    kubeconfig: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(kubeconfig=kubeconfig) as client:
        elector = LeaderElector(lock_of(client, "wedged"), CONFIG)
        term = await elector.win()
        async with term:
            await asyncio.sleep(0.3)
            time.sleep(1.9)  # noqa: ASYNC251, TID251 - blocking is the point
            assert not term.is_leading
            assert not elector.is_leader
            with pytest.raises(LeadershipLostError):
                await term.client.delete("v1/Pod", "x")
            await asyncio.sleep(10)
        assert term.ended_because is TermEnd.WEDGED
        named = [record for record in caplog.records if "does not answer" in record.getMessage()]
        assert [record.levelno for record in named] == [logging.ERROR]
        assert any(": time.sleep(1.9)" in frame for frame in vars(named[0])["stack"])
        # It contends again and leads again.
        async with await elector.win() as again:
            assert int(again.fencing_token) > int(term.fencing_token)


async def test_a_wedged_leaders_lease_is_not_released_while_the_work_may_run(kubeconfig: dict[str, Any]) -> None:
    taken: list[float] = []

    async def other() -> None:
        async with (
            connect(kubeconfig=kubeconfig) as client,
            await LeaderElector(lock_of(client, "kept", "b"), CONFIG).win(),
        ):
            taken.append(time.monotonic())

    async with connect(kubeconfig=kubeconfig) as client:
        term = await LeaderElector(lock_of(client, "kept"), CONFIG).win()
        thread = threading.Thread(target=lambda: asyncio.run(other()))
        async with term:
            thread.start()
            began = time.monotonic()
            while not taken:
                time.sleep(0.01)  # noqa: ASYNC251, TID251 - blocking is the point
            # A heartbeat is missed for the renew deadline, and then a whole lease passes.
            assert taken[0] - began >= CONFIG.renew_deadline + CONFIG.lease_duration - 2 * CONFIG.retry_period
            assert not term.is_leading
        thread.join(10)
        assert term.ended_because is TermEnd.WEDGED


async def test_cancelling_while_contending_ends_the_thread(kubeconfig: dict[str, Any]) -> None:
    async with connect(kubeconfig=kubeconfig) as client:
        async with await LeaderElector(lock_of(client, "cancel"), CONFIG).win():
            for wait in (0.0, 0.01, 0.4):
                task = asyncio.create_task(LeaderElector(lock_of(client, "cancel", "b"), CONFIG).win())
                await asyncio.sleep(wait)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        for _ in range(100):
            if not election_threads():
                break
            await asyncio.sleep(0.05)
        assert election_threads() == []


async def test_callbacks_run_on_the_loop_of_the_work(kubeconfig: dict[str, Any]) -> None:
    seen: list[tuple[str, int]] = []
    config = LeaderElectionConfig(
        lease_duration=1.5,
        renew_deadline=1.0,
        retry_period=0.25,
        on_new_leader=lambda identity: seen.append((identity, threading.get_ident())),
    )
    async with (
        connect(kubeconfig=kubeconfig) as client,
        await LeaderElector(lock_of(client, "calls"), config).win(),
    ):
        assert seen == [("a", threading.get_ident())]


@pytest.mark.parametrize("own_thread", [True, False])
async def test_every_lock_works_both_ways(kubeconfig: dict[str, Any], own_thread: bool) -> None:
    config = LeaderElectionConfig(lease_duration=1.5, renew_deadline=1.0, retry_period=0.25, own_thread=own_thread)
    name = f"both-{own_thread}".lower()
    async with connect(kubeconfig=kubeconfig) as client:
        old = ConfigMapLock(client, namespace="default", name=name, identity="a")
        locks: list[Lock] = [old, MultiLock(old, lock_of(client, name)), lock_of(client, name)]
        for lock in locks:
            async with await LeaderElector(lock, config).win() as term:
                assert bool(election_threads()) == own_thread
                assert term.is_leading


@pytest.mark.slow
def test_the_last_resort_ends_the_process(kubeconfig: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig))
    program = """
        import asyncio, sys, time
        import deltaloop as dl
        from deltaloop.leaderelection import LeaderElectionConfig
        async def main():
            async with dl.connect(kubeconfig=sys.argv[1]) as client:
                lock = dl.LeaseLock(client, namespace="default", name="last-resort", identity="a")
                config = LeaderElectionConfig(
                    lease_duration=1.5, renew_deadline=1.0, retry_period=0.25, last_resort_after=0.2
                )
                async with await dl.LeaderElector(lock, config).win():
                    time.sleep(60)
        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "config")],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == LAST_RESORT_EXIT_CODE, done.stderr
    assert "time.sleep(60)" not in done.stdout
    assert "the process is ended" in done.stderr
