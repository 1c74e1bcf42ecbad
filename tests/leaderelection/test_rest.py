"""run_or_die, the health check, the presets, the counters, and the last resort on the work's own loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import random
import threading
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from deltaloop.client import Client, ClientConfig
from deltaloop.errors import LeadershipLostError
from deltaloop.leaderelection import (
    CONTROL_PLANE_UPGRADES,
    CORE_COMPONENTS,
    EXAMPLE,
    MASTER_STATUS,
    SLOWPATH_TOTAL,
    LeaderElectionConfig,
    LeaderElectionCounters,
    LeaderElector,
    LeaderHealthCheck,
    LeaseLock,
    Term,
    run_or_die,
)
from deltaloop.leaderelection.clock import boot_time
from deltaloop.leaderelection.process_exit import ExitTimer, end_process
from tests.having import having
from tests.leaderelection.fake_server import FakeClient, FakeServer, OtherWrites
from tests.leaderelection.test_elector import make, now
from tests.leaderelection.test_term import said


@pytest.mark.parametrize(
    ("preset", "durations"),
    [(CORE_COMPONENTS, (15, 10, 2)), (CONTROL_PLANE_UPGRADES, (137, 107, 26)), (EXAMPLE, (60, 15, 5))],
)
def test_timing_presets(preset: LeaderElectionConfig, durations: tuple[float, float, float]) -> None:
    assert (preset.lease_duration, preset.renew_deadline, preset.retry_period) == durations
    assert replace(preset, rejoin=False).lease_duration == durations[0]


def test_negative_exit_after_loss_is_rejected() -> None:
    assert LeaderElectionConfig(exit_after_loss=0).exit_after_loss == 0
    with pytest.raises(ValueError, check=having(argument="LeaderElectionConfig.exit_after_loss")):
        LeaderElectionConfig(exit_after_loss=-1)


def own_lock(client: FakeClient) -> LeaseLock:
    return LeaseLock(client, namespace="default", name="example", identity="a")


async def test_run_or_die_returns_result_and_raises_after_loss() -> None:
    server = FakeServer()
    client = FakeClient(server)

    async def work(term: Term) -> str:
        return term.fencing_token

    assert await run_or_die(own_lock(client), work) == "1"
    assert server.holder() == ""

    async def lose(_: Term) -> None:
        server.edit(lambda lease: lease["spec"].update(holderIdentity="thief"))
        await asyncio.Event().wait()

    # The loop's clock is virtual and the elector's is not: short durations.
    config = LeaderElectionConfig(lease_duration=0.4, renew_deadline=0.3, retry_period=0.1)
    watchdog = LeaderHealthCheck()
    with pytest.raises(LeadershipLostError, check=having(identity="a")):
        await run_or_die(own_lock(client), lose, config, watchdog=watchdog)
    watchdog.check()


async def test_health_check_fails_for_leader_that_does_not_stop() -> None:
    check = LeaderHealthCheck(tolerance=5)
    assert check.name == "leaderElection"
    check.check()
    elector, client = make(FakeServer())
    check.set_elector(elector)
    check.check()
    term = await elector.acquire()
    async with term:
        check.check()
        client.always = "refuse"
        while now() < 22:
            try:
                await asyncio.sleep(22 - now())
            except asyncio.CancelledError:
                check.check()  # at 10: the lease has not even expired
        with pytest.raises(LeadershipLostError, check=having(identity="a", fencing_token="1")):
            check.check()
        client.always = None
    check.check()


async def test_counter_names_match_client_go() -> None:
    counters = LeaderElectionCounters()
    elector, client = make(FakeServer(), metrics=counters, config=LeaderElectionConfig(name="n"))
    assert counters.samples() == {}
    term = await elector.acquire()
    assert counters.samples() == {(MASTER_STATUS, "n"): 0.0}, "shown while only contending"
    async with term:
        client.faults = ["refuse"]
        await asyncio.sleep(3)
        assert counters.samples() == {(MASTER_STATUS, "n"): 1.0, (SLOWPATH_TOTAL, "n"): 1.0}
    assert counters.samples()[(MASTER_STATUS, "n")] == 0.0


async def test_metric_shows_no_leader_after_loss_while_work_continues() -> None:
    counters = LeaderElectionCounters()
    elector, client = make(FakeServer(), metrics=counters, config=LeaderElectionConfig(name="n"))
    async with await elector.acquire():
        client.always = "refuse"
        try:
            await asyncio.sleep(100)
        finally:
            assert counters.samples()[MASTER_STATUS, "n"] == 0.0


@pytest.mark.parametrize(("stops_at", "ended"), [(11.0, []), (30.0, [13.0])])
async def test_exit_timer_ends_process_if_work_continues(stops_at: float, ended: list[float]) -> None:
    calls: list[float] = []
    config = LeaderElectionConfig(exit_after_loss=3.0)
    elector, client = make(FakeServer(), config=config, end_process=lambda: calls.append(now()))
    term = await elector.acquire()
    async with term:
        client.always = "refuse"
        while now() < stops_at:
            try:
                await asyncio.sleep(stops_at - now())
            except asyncio.CancelledError:
                continue
        client.always = None
    await asyncio.sleep(20)
    assert calls == ended
    assert isinstance(elector, LeaderElector)


def test_defaults_match_documentation() -> None:
    assert asdict(LeaderElectionConfig()) == {
        "lease_duration": 15.0,
        "renew_deadline": 10.0,
        "retry_period": 2.0,
        "release_on_cancel": True,
        "rejoin": True,
        "name": "",
        "on_started_leading": None,
        "on_stopped_leading": None,
        "on_new_leader": None,
        "warning_interval": 5.0,
        "renew_in_thread": True,
        "exit_after_loss": None,
    }
    assert LeaderHealthCheck().tolerance == 20.0
    defaults = inspect.signature(LeaderElector).parameters
    assert defaults["clock"].default is boot_time
    assert defaults["random"].default is random.random
    assert defaults["end_process"].default is end_process
    elapsed = datetime.now(UTC) - defaults["wall_clock"].default()
    assert abs(elapsed) < timedelta(seconds=60)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"warning_interval": 0.0}, r"LeaderElectionConfig\.warning_interval"),
        ({"exit_after_loss": -1.0}, r"LeaderElectionConfig\.exit_after_loss"),
        ({"lease_duration": "15"}, r"LeaderElectionConfig\.lease_duration"),
        ({"rejoin": "no"}, r"LeaderElectionConfig\.rejoin"),
    ],
)
def test_invalid_options_are_rejected_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        LeaderElectionConfig(**options)


def test_health_check_without_tolerance_is_rejected() -> None:
    with pytest.raises(ValueError, check=having(argument="LeaderHealthCheck.tolerance")):
        LeaderHealthCheck(0)


async def test_term_is_healthy_for_lease_duration_plus_tolerance() -> None:
    late = 0.0
    server = FakeServer()
    client = FakeClient(server)
    config = LeaderElectionConfig(lease_duration=14.2)  # written as 15 s
    elector = LeaderElector(own_lock(client), config, clock=lambda: now() + late, random=lambda: 0.0)
    assert (elector.identity, elector.name, elector.term) == ("a", "default/example", None)
    assert repr(elector) == "<LeaderElector default/example as a, idle, leader ->"
    elector.check()
    term = await elector.acquire()
    assert repr(elector) == "<LeaderElector default/example as a, leading, leader a>"
    check = LeaderHealthCheck(tolerance=5.0)
    check.set_elector(elector)
    for most, tolerance in ((15.0, 0.0), (20.0, 5.0)):
        late = most
        elector.check(tolerance)
        late = most + 0.25
        with pytest.raises(LeadershipLostError, check=having(identity="a", fencing_token="1")) as caught:
            elector.check(tolerance)
        error = caught.value
        assert (error.lock, error.identity, error.fencing_token) == ("default/example", "a", term.fencing_token)
    late = 15.5
    check.check()
    with pytest.raises(LeadershipLostError):
        elector.check()
    late = 20.5
    with pytest.raises(LeadershipLostError):
        check.check()
    await term.abandon()
    elector.check()


async def test_leadership_lost_error_contains_lock() -> None:
    server = FakeServer()
    elector, client = make(server, config=LeaderElectionConfig(rejoin=False))

    async def lose(_: Term) -> None:
        client.always = "refuse"
        await asyncio.sleep(100)

    with pytest.raises(LeadershipLostError, check=having(identity="a")) as caught:
        await elector.run(lose)
    assert (caught.value.lock, caught.value.identity, caught.value.fencing_token) == ("default/example", "a", "")


async def test_run_or_die_uses_given_options() -> None:
    server = FakeServer()
    counters, told = LeaderElectionCounters(), list[str]()
    guarded = Client(ClientConfig(server="http://fake"), transport=OtherWrites(server))
    config = LeaderElectionConfig(name="n", on_started_leading=lambda: told.append("started"))
    watchdog = LeaderHealthCheck()

    async def work(term: Term) -> str:
        await term.client.delete("v1/Pod", "x")
        assert counters.samples() == {(MASTER_STATUS, "n"): 1.0}
        assert watchdog._elector is not None
        assert watchdog._elector.term is term
        return "done"

    lock = own_lock(FakeClient(server))
    done = await run_or_die(lock, work, config, client=guarded, metrics=counters, watchdog=watchdog)
    assert (done, told, server.others) == ("done", ["started"], [("delete", "x")])

    async def without(term: Term) -> None:
        with pytest.raises(RuntimeError):
            _ = term.client

    await run_or_die(own_lock(FakeClient(server)), without)


async def test_counters_start_at_zero() -> None:
    counters = LeaderElectionCounters()
    for name in ("a", "a", "b"):
        counters.slow_path_exercised(name)
    samples = counters.samples()
    assert samples == {("leader_election_slowpath_total", "a"): 2.0, ("leader_election_slowpath_total", "b"): 1.0}
    samples.clear()
    counters.leader_on("a")
    assert len(counters.samples()) == 3
    assert counters.samples()["leader_election_master_status", "a"] == 1.0


async def test_failing_hooks_are_logged_and_keep_lease(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> None:
        raise KeyError("broken")

    class Broken:
        def leader_on(self, name: str) -> None:
            broken()

        leader_off = slow_path_exercised = leader_on

    class BrokenEvents:
        event = staticmethod(broken)

    server = FakeServer()
    client = FakeClient(server)
    lock = LeaseLock(client, namespace="default", name="example", identity="a", recorder=BrokenEvents())
    config = LeaderElectionConfig(name="n", on_started_leading=broken, on_stopped_leading=broken, on_new_leader=broken)
    elector = LeaderElector(lock, config, metrics=Broken(), clock=now, random=lambda: 0.0)
    async with await elector.acquire():
        client.faults = ["refuse"]
        await asyncio.sleep(3)
    named = said(caplog, "leader election callback raised", "levelno", "callback", "elector", "lock", "identity")
    assert [each[1] for each in named] == [
        *("leader_off", "on_new_leader", "leader_on", "record_event", "on_started_leading"),
        *("slow_path_exercised", "leader_off", "record_event", "on_stopped_leading"),
    ]
    assert {(each[0], *each[2:]) for each in named} == {(logging.ERROR, "n", "default/example", "a")}
    assert server.holder() == ""


def test_process_exit_does_not_wait_for_logging(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ended = list[int]()
    timers = list[threading.Timer]()
    started = threading.Timer.start

    def start(timer: threading.Timer) -> None:
        timers.append(timer)
        started(timer)

    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(threading.Timer, "start", start)
    end_process()
    assert ended == [70]
    [timer] = timers
    timer.cancel()
    assert (timer.interval, timer.args, timer.daemon) == (1.0, (70,), True)
    timer.function(*timer.args)
    assert ended == [70, 70]
    [record] = caplog.records
    assert (record.levelno, vars(record)["exit"]) == (logging.CRITICAL, 70)
    assert "ending process" in record.getMessage()


async def test_exit_timer_fires_once_and_can_be_canceled() -> None:
    ends = list[float]()
    resort = ExitTimer(3.0, lambda: ends.append(now()))
    resort.cancel()
    resort.start()
    await asyncio.sleep(1)
    resort.start()
    await asyncio.sleep(10)
    assert ends == [3.0]
    resort.cancel()
    resort.start()
    resort.cancel()
    await asyncio.sleep(10)
    assert ends == [3.0]
    resort.start()
    await asyncio.sleep(10)
    assert ends == [3.0, 24.0]
    never = ExitTimer(None, lambda: ends.append(now()))
    never.start()
    at_once = ExitTimer(0.0, lambda: ends.append(now()))
    at_once.start()
    await asyncio.sleep(1)
    assert ends == [3.0, 24.0, 31.0]


@pytest.mark.real_time
@pytest.mark.parametrize("second", ["leader_on", "slow_path_exercised", "samples"])
def test_counters_are_thread_safe(second: str) -> None:
    inside, go_on = threading.Event(), threading.Event()

    class Slow(str):
        """A name that takes its time to be looked up."""

        __slots__ = ()

        def __hash__(self) -> int:
            inside.set()
            assert go_on.wait(5)
            return super().__hash__()

    counters = LeaderElectionCounters()
    call = getattr(counters, second)
    threads = [
        threading.Thread(target=counters.slow_path_exercised, args=(Slow("slow"),)),
        threading.Thread(target=call, args=() if second == "samples" else ("quick",)),
    ]
    threads[0].start()
    assert inside.wait(5)
    threads[1].start()
    threads[1].join(0.02)
    assert threads[1].is_alive()
    go_on.set()
    for thread in threads:
        thread.join(5)
