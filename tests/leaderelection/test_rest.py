"""run_or_die, the health check, the presets, the counters, and the last resort on the work's own loop."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

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
    LeadershipLostError,
    LeaseLock,
    Term,
    run_or_die,
)
from tests.leaderelection.fake_server import FakeClient, FakeServer
from tests.leaderelection.test_elector import make, now


@pytest.mark.parametrize(
    ("preset", "durations"),
    [(CORE_COMPONENTS, (15, 10, 2)), (CONTROL_PLANE_UPGRADES, (137, 107, 26)), (EXAMPLE, (60, 15, 5))],
)
def test_the_presets(preset: LeaderElectionConfig, durations: tuple[float, float, float]) -> None:
    assert (preset.lease_duration, preset.renew_deadline, preset.retry_period) == durations
    assert replace(preset, rejoin=False).lease_duration == durations[0]


def test_a_last_resort_in_the_past_is_refused() -> None:
    assert LeaderElectionConfig(last_resort_after=0).last_resort_after == 0
    with pytest.raises(ValueError, match="last_resort_after"):
        LeaderElectionConfig(last_resort_after=-1)


def own_lock(client: FakeClient) -> LeaseLock:
    return LeaseLock(client, namespace="default", name="example", identity="a")


async def test_run_or_die_hands_the_result_on_and_raises_after_a_loss() -> None:
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
    with pytest.raises(LeadershipLostError, match="does not contend again"):
        await run_or_die(own_lock(client), lose, config, watchdog=watchdog)
    watchdog.check()


async def test_the_health_check_of_a_leader_that_does_not_stop() -> None:
    check = LeaderHealthCheck(tolerance=5)
    assert check.name == "leaderElection"
    check.check()
    elector, client = make(FakeServer())
    check.set_elector(elector)
    check.check()
    term = await elector.win()
    async with term:
        check.check()
        client.always = "refuse"
        while now() < 22:
            try:
                await asyncio.sleep(22 - now())
            except asyncio.CancelledError:
                check.check()  # at 10: the lease has not even expired
        with pytest.raises(LeadershipLostError, match="not renewed"):
            check.check()
        client.always = None
    check.check()


async def test_the_counters_have_upstreams_names() -> None:
    counters = LeaderElectionCounters()
    elector, client = make(FakeServer(), metrics=counters, config=LeaderElectionConfig(name="n"))
    assert counters.samples() == {}
    term = await elector.win()
    assert counters.samples() == {(MASTER_STATUS, "n"): 0.0}, "shown while only contending"
    async with term:
        client.faults = ["refuse"]
        await asyncio.sleep(3)
        assert counters.samples() == {(MASTER_STATUS, "n"): 1.0, (SLOWPATH_TOTAL, "n"): 1.0}
    assert counters.samples()[(MASTER_STATUS, "n")] == 0.0


@pytest.mark.parametrize(("stops_at", "ended"), [(11.0, []), (30.0, [13.0])])
async def test_the_last_resort_ends_the_process_if_the_work_goes_on(stops_at: float, ended: list[float]) -> None:
    calls: list[float] = []
    config = LeaderElectionConfig(last_resort_after=3.0)
    elector, client = make(FakeServer(), config=config, end_process=lambda: calls.append(now()))
    term = await elector.win()
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
