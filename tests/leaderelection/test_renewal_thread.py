"""Renewals on their own thread, on the real clock: the work may block its loop for a while, but not for ever."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deltaloop.api.kinds import LEASE
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.client import Client, connect
from deltaloop.errors import LeadershipLostError
from deltaloop.leaderelection import (
    LEADERSHIP_LOST_EXIT_CODE,
    ConfigMapLock,
    LeaderElectionConfig,
    LeaderElector,
    LeaseLock,
    Lock,
    LossReason,
    MultiLock,
    TermEnd,
)
from deltaloop.leaderelection.core.election import ReleaseOutcome
from deltaloop.testing import eventually
from tests.leaderelection.fake_server import FakeClient, FakeServer
from tests.leaderelection.serving import serving
from tests.leaderelection.test_lock import Recorder
from tests.leaderelection.test_term import said

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


async def test_temporarily_blocked_loop_keeps_lease(kubeconfig: dict[str, Any]) -> None:
    async with connect(kubeconfig=kubeconfig) as client:
        elector = LeaderElector(lock_of(client, "slow"), CONFIG)
        term = await elector.acquire()
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


async def test_hung_leader_is_logged_and_loses_lease(
    kubeconfig: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(kubeconfig=kubeconfig) as client:
        elector = LeaderElector(lock_of(client, "wedged"), CONFIG)
        term = await elector.acquire()
        async with term:
            await asyncio.sleep(0.3)
            time.sleep(1.9)  # noqa: ASYNC251, TID251 - blocking is the point
            assert not term.is_leading
            assert not elector.is_leader
            with pytest.raises(LeadershipLostError):
                await term.client.delete("v1/Pod", "x")
            await asyncio.sleep(10)
        assert term.ended_because is TermEnd.WEDGED
        named = [record for record in caplog.records if "does not respond" in record.getMessage()]
        assert [record.levelno for record in named] == [logging.ERROR]
        assert any(": time.sleep(1.9)" in frame for frame in vars(named[0])["stack"])
        # It contends again and leads again.
        async with await elector.acquire() as again:
            assert int(again.fencing_token) > int(term.fencing_token)


async def test_lease_of_hung_leader_is_not_released(kubeconfig: dict[str, Any]) -> None:
    taken: list[float] = []

    async def other() -> None:
        async with (
            connect(kubeconfig=kubeconfig) as client,
            await LeaderElector(lock_of(client, "kept", "b"), CONFIG).acquire(),
        ):
            taken.append(time.monotonic())

    async with connect(kubeconfig=kubeconfig) as client:
        term = await LeaderElector(lock_of(client, "kept"), CONFIG).acquire()
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


async def test_cancellation_while_contending_ends_thread(kubeconfig: dict[str, Any]) -> None:
    async with connect(kubeconfig=kubeconfig) as client:
        async with await LeaderElector(lock_of(client, "cancel"), CONFIG).acquire():
            for wait in (0.0, 0.01, 0.4):
                task = asyncio.create_task(LeaderElector(lock_of(client, "cancel", "b"), CONFIG).acquire())
                await asyncio.sleep(wait)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        for _ in range(100):
            if not election_threads():
                break
            await asyncio.sleep(0.05)
        assert election_threads() == []


async def test_callbacks_run_on_main_loop(kubeconfig: dict[str, Any]) -> None:
    seen: list[tuple[str, int]] = []
    config = LeaderElectionConfig(
        lease_duration=1.5,
        renew_deadline=1.0,
        retry_period=0.25,
        on_new_leader=lambda identity: seen.append((identity, threading.get_ident())),
    )
    async with (
        connect(kubeconfig=kubeconfig) as client,
        await LeaderElector(lock_of(client, "calls"), config).acquire(),
    ):
        assert seen == [("a", threading.get_ident())]


@pytest.mark.parametrize("renew_in_thread", [True, False])
async def test_locks_work_with_and_without_renewal_thread(kubeconfig: dict[str, Any], renew_in_thread: bool) -> None:
    config = LeaderElectionConfig(
        lease_duration=1.5, renew_deadline=1.0, retry_period=0.25, renew_in_thread=renew_in_thread
    )
    name = f"both-{renew_in_thread}".lower()
    async with connect(kubeconfig=kubeconfig) as client:
        old = ConfigMapLock(client, namespace="default", name=name, identity="a")
        locks: list[Lock] = [old, MultiLock(old, lock_of(client, name)), lock_of(client, name)]
        for lock in locks:
            async with await LeaderElector(lock, config).acquire() as term:
                assert bool(election_threads()) == renew_in_thread
                assert term.is_leading


@pytest.mark.slow
def test_exit_timer_ends_process(kubeconfig: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config").write_text(write_yaml([kubeconfig]))
    program = """
        import asyncio, sys, time
        import deltaloop as dl
        from deltaloop.leaderelection import LeaderElectionConfig
        async def main():
            async with dl.connect(kubeconfig=sys.argv[1]) as client:
                lock = dl.LeaseLock(client, namespace="default", name="last-resort", identity="a")
                config = LeaderElectionConfig(
                    lease_duration=1.5, renew_deadline=1.0, retry_period=0.25, exit_after_loss=0.2
                )
                async with await dl.LeaderElector(lock, config).acquire():
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
    assert done.returncode == LEADERSHIP_LOST_EXIT_CODE, done.stderr
    assert "time.sleep(60)" not in done.stdout
    assert "ending process" in done.stderr


# The same with a server in memory and short durations.

SHORT = LeaderElectionConfig(lease_duration=3.0, renew_deadline=1.0, retry_period=0.1, name="n")
HANGS = replace(SHORT, renew_deadline=0.5)


class Movable:
    """A lock that says what becomes of it on the thread of its elector."""

    def __init__(
        self, *, entering: Callable[[], Awaitable[None]] | None = None, leaving: Exception | None = None
    ) -> None:
        self.server = FakeServer()
        self.events = Recorder()
        self.client = FakeClient(self.server)
        self.moved_client = FakeClient(self.server)
        self.here = self._lock(self.client)
        self.identity = "a"
        self.seen: list[tuple[str, str]] = []
        self.entering, self.leaving = entering, leaving

    def _lock(self, client: FakeClient) -> LeaseLock:
        return LeaseLock(client, namespace="default", name="example", identity="a", recorder=self.events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.here, name)

    def note(self, what: str) -> None:
        self.seen.append((what, threading.current_thread().name))

    @asynccontextmanager
    async def on_own_connection(self) -> AsyncGenerator[Lock, None]:
        self.note("entering")
        if self.entering is not None:
            await self.entering()
        try:
            yield self._lock(self.moved_client)
        finally:
            self.note("left")
        if self.leaving is not None:
            raise self.leaving


def elector_of(lock: Movable, config: LeaderElectionConfig = SHORT, **options: Any) -> LeaderElector:
    given: Any = lock
    return LeaderElector(given, config, **options)


async def gone() -> bool:
    await eventually(lambda: election_threads() == [], every=0.01)
    return True


async def test_thread_runs_from_contending_to_end_of_term() -> None:
    lock = Movable()
    elector = elector_of(lock)
    term = await elector.acquire()
    [thread] = [thread for thread in threading.enumerate() if thread.name == "deltaloop-election-n"]
    assert thread.daemon
    async with term:
        pass
    assert election_threads() == []
    assert lock.seen == [("entering", "deltaloop-election-n"), ("left", "deltaloop-election-n")]
    assert lock.client.calls == [], "all requests go over the connection of the thread"
    assert lock.moved_client.verbs[:2] == ["get", "create"]
    assert {*lock.moved_client.verbs[2:]} == {"update"}
    assert lock.server.holder() == ""
    # The lock of the thread knows the object that it holds.
    assert [(about.uid, message) for about, *_, message in lock.events.events] == [
        ("uid-1", "a became leader"),
        ("uid-1", "a stopped leading"),
    ]
    async with await elector.acquire() as again:
        assert again.is_leading
        assert election_threads() == ["deltaloop-election-n"]
    assert election_threads() == []


async def test_renewals_without_thread_run_on_main_loop() -> None:
    lock = Movable()
    async with await elector_of(lock, replace(SHORT, renew_in_thread=False)).acquire():
        assert election_threads() == []
    assert lock.seen == []
    assert lock.client.verbs[:2] == ["get", "create"]
    assert {*lock.client.verbs[2:]} == {"update"}


async def test_connection_error_is_raised_by_acquire() -> None:
    tries = list[int]()

    async def fail_once() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise LookupError("no connection")

    elector = elector_of(Movable(entering=fail_once))
    with pytest.raises(LookupError, match="no connection"):
        await elector.acquire()
    assert election_threads() == []
    async with await elector.acquire() as term:
        assert term.is_leading


async def test_lock_that_moves_only_once_is_rejected() -> None:
    class Once(Movable):
        moved = False

        def on_own_connection(self) -> AbstractAsyncContextManager[Lock] | None:  # type: ignore[override]
            self.moved, moved = True, self.moved
            return None if moved else super().on_own_connection()

    with pytest.raises(RuntimeError):
        await elector_of(Once()).acquire()
    assert election_threads() == []


async def test_cancellation_while_connecting_closes_connection(caplog: pytest.LogCaptureFixture) -> None:
    entered, go_on = threading.Event(), threading.Event()

    async def slow() -> None:
        entered.set()
        await asyncio.to_thread(go_on.wait, 5)

    lock = Movable(entering=slow)
    elector = elector_of(lock)
    winning = asyncio.create_task(elector.acquire())
    assert await asyncio.to_thread(entered.wait, 5)
    elector._candidacy.record_event("there is nothing yet that could tell it")
    winning.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await winning
    assert election_threads() == []
    assert [what for what, _ in lock.seen] == ["entering", "left"]
    assert lock.moved_client.calls == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_cancellation_while_contending_releases_lock() -> None:
    lock = Movable()
    lock.moved_client.faults = [None, "lose answer"]
    winning = asyncio.create_task(elector_of(lock).acquire())
    await eventually(lambda: lock.server.holder() == "a", every=0.005)
    winning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await winning
    assert lock.server.holder() == ""
    assert election_threads() == []


async def test_canceled_step_ends_before_next_step() -> None:
    steps: list[str] = []

    class Slow(FakeClient):
        """Takes its time to be cancelled."""

        async def create(self, *given: Any, **options: Any) -> Any:
            steps.append("create")
            try:
                await asyncio.sleep(5)
            finally:
                await asyncio.sleep(0.05)
                steps.append("create has ended")

        async def get(self, *given: Any, **options: Any) -> Any:
            steps.append("get")
            return await super().get(*given, **options)

    lock = Movable()
    lock.moved_client = Slow(lock.server)
    winning = asyncio.create_task(elector_of(lock).acquire())
    await eventually(lambda: steps == ["get", "create"], every=0.005)
    winning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await winning
    assert steps == ["get", "create", "create has ended", "get"]


async def test_lease_is_renewed_for_work_that_blocks_immediately() -> None:
    lock = Movable()
    term = await elector_of(lock).acquire()
    async with term:
        until = time.monotonic() + 5.0
        while lock.moved_client.verbs.count("update") < 2 and time.monotonic() < until:
            time.sleep(0.01)  # noqa: ASYNC251, TID251 - blocking is the point
        assert lock.moved_client.verbs.count("update") >= 2
        assert term.is_leading
    assert term.ended_because is TermEnd.COMPLETED


async def test_events_metrics_and_callbacks_run_on_main_loop() -> None:
    told: list[tuple[str, int]] = []

    def tell(what: str) -> None:
        told.append((what, threading.get_ident()))

    class Metrics:
        def leader_on(self, name: str) -> None: ...

        leader_off = leader_on

        def slow_path_exercised(self, name: str) -> None:
            tell(f"slow path of {name}")

    def new_leader(identity: str) -> None:
        tell(f"leader {identity}")

    lock = Movable()
    config = replace(SHORT, on_new_leader=new_leader)
    async with await elector_of(lock, config, metrics=Metrics()).acquire():
        lock.moved_client.faults = ["refuse"]
        await eventually(lambda: len(told) == 2, every=0.01)
    here = threading.get_ident()
    assert told == [("leader a", here), ("slow path of n", here)]


async def test_hung_leader_is_logged_and_process_ends(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []
    lock = Movable()
    config = replace(HANGS, exit_after_loss=0.05)
    elector = elector_of(lock, config, end_process=lambda: ended.append(threading.current_thread().name))
    term = await elector.acquire()
    async with term:
        await asyncio.sleep(0.12)  # a heartbeat or two are answered
        time.sleep(0.95)  # noqa: ASYNC251, TID251 - blocking is the point
        assert not term.is_leading
        assert ended == ["deltaloop-election-n"], "while it hangs"
        await asyncio.sleep(5)
    assert (term.ended_because, term.loss) == (TermEnd.WEDGED, LossReason.WEDGED)
    [named] = [vars(record) for record in caplog.records if "does not respond" in record.getMessage()]
    assert (named["levelno"], named["elector"], named["identity"]) == (logging.ERROR, "n", "a")
    assert 0.5 <= named["silent_for"] < 0.95
    assert named["silent_for"] == round(named["silent_for"], 3)
    assert any("time.sleep(0.95)" in frame for frame in named["stack"])
    assert await gone()


async def test_loss_on_thread_does_not_report_hang(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []
    lock = Movable()
    elector = elector_of(lock, replace(SHORT, exit_after_loss=0.5), end_process=lambda: ended.append("ended"))
    term = await elector.acquire()
    async with term:
        lock.server.edit(lambda lease: lease["spec"].update(holderIdentity="thief"))
        await asyncio.sleep(5)
    assert (term.ended_because, lock.server.holder()) == (TermEnd.TAKEN, "thief")
    assert said(caplog, "lost leadership", "because") == [("taken by another holder",)]
    assert await gone()
    assert ended == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_error_closing_connection_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    lock = Movable(leaving=LookupError("cannot leave"))
    async with await elector_of(lock).acquire():
        pass
    assert election_threads() == []
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert vars(record)["elector"] == "n"
    assert "election thread failed" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


async def test_canceled_release_ends_thread() -> None:
    lock = Movable()
    term = await elector_of(lock).acquire()

    async def lead() -> None:
        async with term:
            lock.moved_client.always = "hang"

    leading = asyncio.create_task(lead())
    await eventually(lambda: lock.moved_client.verbs[2:] != [], every=0.005)
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading
    assert term.over
    assert await gone()
    assert lock.seen[-1][0] == "left"


async def test_calls_without_thread_raise_runtime_error() -> None:
    candidate: Any = elector_of(Movable())._candidacy
    await candidate.close()
    candidate.record_event("nobody hears it")
    with pytest.raises(RuntimeError):
        await candidate.contend()
    with pytest.raises(RuntimeError):
        candidate.begin()
    await candidate.open()
    await candidate.open()  # as after a cancelled end: another thread takes the place of the one before
    assert election_threads() == ["deltaloop-election-n"]
    await candidate.close()
    await candidate.close()
    assert election_threads() == []
    with pytest.raises(RuntimeError):
        await candidate.contend()


async def test_waiting_for_renewals_starts_them() -> None:
    lock = Movable()
    candidate: Any = elector_of(lock)._candidacy
    await candidate.open()
    await candidate.contend()
    lock.server.edit(lambda lease: lease["spec"].update(holderIdentity="thief"))
    assert await candidate.renew() is LossReason.TAKEN
    assert await candidate.give_up(release=True) is ReleaseOutcome.NOT_HELD
    await candidate.close()


async def test_loop_is_not_blocked_while_thread_ends() -> None:
    ticks = 0

    class Slow(Movable):
        @asynccontextmanager
        async def on_own_connection(self) -> AsyncGenerator[Lock, None]:
            async with super().on_own_connection() as lock:
                yield lock
                await asyncio.sleep(0.1)

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    before = 0
    async with await elector_of(Slow()).acquire():
        before = ticks
    assert ticks - before >= 3
    ticking.cancel()
    await asyncio.wait([ticking])
