"""Scenarios under faults."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from examples.simulation.ordinary import SCENARIOS

import deltaloop as dl
from deltaloop.api.json_values import mapping, text
from deltaloop.api.kstatus import object_status
from deltaloop.errors import BrokenReferenceError, SimulationFailedError
from deltaloop.simulation import (
    Oracle,
    Simulation,
    SimulationOptions,
    parse_schedule,
    simulate,
)
from deltaloop.simulation.core.schedules import REVISIONS, OrderKind, ScheduledFault
from deltaloop.testing import Harness
from deltaloop.testing.injected_faults.core.program_writes import FaultKind, WriteName
from tests.nightly import NIGHTLY, share

CONFIG_MAP = dl.kinds.CONFIG_MAP
Reconcile = Callable[[dl.Request, dl.Context], Awaitable[None]]
Scenario = Callable[[Harness], Awaitable[None]]


def broker(function: Reconcile) -> dl.Controller:
    return dl.controller(CONFIG_MAP, name="broker", writes=[CONFIG_MAP])(only("broker", function))


def only(name: str, function: Reconcile) -> Reconcile:
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        if request.name == name:
            await function(request, ctx)

    return reconcile


def grows(function: Reconcile) -> Scenario:
    """A broker is created, and asked for more later."""

    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}, "data": {"size": "1"}})
        await world.start(broker(function))
        await world.settled()
        await world.client.patch(CONFIG_MAP, "broker", {"data": {"size": "2"}})
        await world.settled()

    return scenario


async def put(ctx: dl.Context, name: str, **data: str) -> None:
    def wanted(fields: dict[str, Any]) -> None:
        fields["data"] = data

    await ctx.client.create_or_update(CONFIG_MAP, name, wanted)


async def loses_a_volume(_: dl.Request, ctx: dl.Context) -> None:
    """Takes the set's size for the volume's: if it dies between the two, nobody makes the volume larger any more."""
    size = (await ctx.client.get(CONFIG_MAP, "broker"))["data"]["size"]
    present = await ctx.client.find(CONFIG_MAP, "set")
    if await ctx.client.find(CONFIG_MAP, "volume") is None:
        await put(ctx, "volume", size=size)
    if present is not None and present["data"]["size"] != size:
        await ctx.client.delete(CONFIG_MAP, "set")
        await put(ctx, "volume", size=size)
        present = None
    if present is None:
        await put(ctx, "set", size=size)


async def keeps_its_volume(_: dl.Request, ctx: dl.Context) -> None:
    """The same, fixed: each is compared with what it should be."""
    size = (await ctx.client.get(CONFIG_MAP, "broker"))["data"]["size"]
    await put(ctx, "volume", size=size)
    present = await ctx.client.find(CONFIG_MAP, "set")
    if present is not None and present["data"]["size"] != size:
        await ctx.client.delete(CONFIG_MAP, "set")
        present = None
    if present is None:
        await put(ctx, "set", size=size)


def test_program_that_loses_state_is_found() -> None:
    kinds = (FaultKind.CRASH_BEFORE, FaultKind.STALE)
    report = Simulation(grows(loses_a_volume), SimulationOptions(combinations=False, faults=kinds)).explore()
    found = {failure.replay: [problem.oracle for problem in failure.problems] for failure in report.failures}
    assert found == {
        "crash-before:update:configmaps:1": [Oracle.END_STATE],
        "stale:delete:configmaps:1:3": [Oracle.RECREATED],  # it makes the small set again, and has to delete it
    }
    assert report.complete
    crashes, restarts = len(report.writes), 3 + 4 + 5 + 6 + 5
    assert report.runs == 3 + crashes + restarts
    assert not report.unused_faults
    told = str(report)
    assert 'v1/ConfigMap default/volume: data.size must be "2", got "1"' in told
    assert "update configmaps default/volume -> no response   <- the program crashes before the 1st update" in told


@pytest.mark.nightly
def test_level_triggered_program_has_no_failures() -> None:
    crashes = (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER)
    kinds = (*crashes, FaultKind.LOST_RESPONSE, FaultKind.CONFLICT, FaultKind.MISSED_EVENTS)
    report = Simulation(grows(keeps_its_volume), SimulationOptions(combinations=False, faults=kinds)).explore()
    assert not report.failures
    assert str(report) == "28 runs over 5 writes: no failures"


async def repairs(request: dl.Request, ctx: dl.Context) -> None:
    """Marks that it is at work; what it finds marked it repairs, and what is repaired by then it throws away."""
    mark, volume = [await ctx.client.live.find(CONFIG_MAP, name) for name in ("mark", "volume")]
    if mark is None:
        if volume is None:
            await ctx.client.create(CONFIG_MAP, {"metadata": {"name": "mark"}})
            await ctx.client.create(CONFIG_MAP, {"metadata": {"name": "volume"}})
            await ctx.client.delete(CONFIG_MAP, "mark")
        return
    if volume is None:
        await ctx.client.create(CONFIG_MAP, {"metadata": {"name": "volume"}})
    elif "repaired" in volume.annotations:
        await ctx.client.delete(CONFIG_MAP, "volume")
    else:
        await ctx.client.patch(CONFIG_MAP, "volume", {"metadata": {"annotations": {"repaired": "yes"}}})
    await ctx.client.delete(CONFIG_MAP, "mark")


@pytest.mark.nightly
def test_faults_cover_writes_of_recovery() -> None:
    options = SimulationOptions(
        runs=25,
        faults=(FaultKind.CRASH_AFTER, FaultKind.LOST_RESPONSE),
        may_differ=(("v1/ConfigMap", "default/volume", "metadata", "annotations"),),
    )
    report = Simulation(grows(repairs), options).explore()
    assert "patch" not in {name.verb for name in report.writes}
    struck = {getattr(fault, "write", None) for failure in report.failures for fault in failure.schedule}
    assert struck - {*report.writes, None}
    assert all(
        report.coverage[name][kind]
        for name in report.writes
        for kind in (FaultKind.CRASH_AFTER, FaultKind.LOST_RESPONSE)
    )
    assert any(name.verb == "patch" for name in report.coverage)
    plain = next(iter(report.paths))
    assert report.paths[plain] > 1, "the path of the run without faults comes again"
    assert any("patch configmaps" in path for path in report.paths), "and the repair's own, which only faults show"


@pytest.mark.nightly
async def test_simulate_can_be_awaited_in_test() -> None:
    with pytest.raises(SimulationFailedError) as caught:
        await simulate(grows(loses_a_volume), SimulationOptions(runs=12))
    assert "crash-before:update:configmaps:1" in [each.replay for each in caught.value.report.failures]
    assert (await simulate(grows(keeps_its_volume), SimulationOptions(runs=12))).runs == 12


def test_failure_can_be_replayed() -> None:
    simulation = Simulation(grows(loses_a_volume))
    failure = simulation.replay(parse_schedule("crash-before:update:configmaps:1"))
    assert failure is not None
    assert failure.run == simulation.run(failure.schedule), "to the byte"
    assert simulation.replay(parse_schedule("lost-response:create:configmaps:1")) is None


@pytest.mark.nightly
def test_interrupted_search_keeps_failures() -> None:
    runs = 0

    async def interrupted(world: Harness) -> None:
        nonlocal runs
        runs += 1
        if runs == 30:
            raise KeyboardInterrupt
        await grows(loses_a_volume)(world)

    simulation = Simulation(interrupted, SimulationOptions(seed=3))
    assert simulation.found is None
    with pytest.raises(KeyboardInterrupt):
        simulation.explore()
    found = simulation.found
    assert found is not None
    assert (found.runs, found.complete) == (30, False)
    assert found.failures[0].replay.startswith("seed:3,crash-")
    assert Simulation(grows(loses_a_volume), SimulationOptions(runs=12, combinations=False)).found is None


def test_unnecessary_faults_are_removed_from_failure() -> None:
    simulation = Simulation(grows(loses_a_volume))
    faults = "busy:create:configmaps:1,crash-before:update:configmaps:1,lost-response:create:configmaps:2"
    longer = parse_schedule(faults)
    failure = simulation.replay(longer)
    assert failure is not None
    assert simulation.shrink(failure).replay == "crash-before:update:configmaps:1"


@pytest.mark.nightly
def test_seed_determines_random_values_of_program() -> None:
    async def draws(_: dl.Request, ctx: dl.Context) -> None:
        if await ctx.client.find(CONFIG_MAP, "drawn") is None:
            await put(ctx, "drawn", number=str(random.random()), id=str(uuid.uuid4()))

    simulation = Simulation(grows(draws))
    assert simulation.run((), seed=1) == simulation.run((), seed=1)
    assert simulation.run((), seed=1).end != simulation.run((), seed=2).end
    assert not Simulation(grows(draws), SimulationOptions(runs=30)).explore().failures, "that it differs is learnt"


async def makes_twice(_: dl.Request, ctx: dl.Context) -> None:
    """Throws a password away that it has not written down yet."""
    if await ctx.client.find(CONFIG_MAP, "noted") is None:
        if await ctx.client.find(CONFIG_MAP, "password") is not None:
            await ctx.client.delete(CONFIG_MAP, "password")
        await put(ctx, "password", word="x")
        await put(ctx, "noted", done="true")


def test_recreated_object_is_found_despite_equal_final_state() -> None:
    options = SimulationOptions(combinations=False, faults=(FaultKind.CRASH_AFTER, FaultKind.LOST_RESPONSE))
    report = Simulation(grows(makes_twice), options).explore()
    assert {problem.oracle for failure in report.failures for problem in failure.problems} == {Oracle.RECREATED}


def times_of(schedule: str) -> list[float]:
    return [write.at for write in Simulation(grows(keeps_its_volume)).run(parse_schedule(schedule)).writes]


def test_delayed_watches_deliver_events_later() -> None:
    assert max(times_of("")) < 1
    *before, volume, _, _ = times_of("delayed-watch:create:configmaps:2")
    assert max(before) < 1
    assert 30 <= volume < 40


def test_stale_restart_catches_up_later() -> None:
    writes = Simulation(grows(keeps_its_volume)).run(parse_schedule("stale:delete:configmaps:1:2")).writes
    updates = [(write.code, write.at) for write in writes if write.verb == "update"]
    assert {code for code, at in updates if 1 < at < 31} == {409}, "it updates a volume that was updated already"
    assert writes[-1].code == 201
    assert writes[-1].at > 31
    assert times_of("crash-after:delete:configmaps:1")[-1] < 2


def test_missed_events_cause_new_list() -> None:
    """Of what came and went in between, nothing is seen."""
    seen: list[str] = []

    async def looks(_: dl.Request, ctx: dl.Context) -> None:
        seen.append((await ctx.client.get(CONFIG_MAP, "broker"))["data"]["size"])
        await ctx.client.create_or_update(CONFIG_MAP, "made", lambda fields: fields.update(data={"size": seen[-1]}))

    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}, "data": {"size": "1"}})
        await world.start(broker(looks))
        await asyncio.sleep(1)
        for size in ("2", "3", "1"):
            await world.client.patch(CONFIG_MAP, "broker", {"data": {"size": size}})
            await asyncio.sleep(1)
        await world.settled()

    run = Simulation(scenario).run()
    assert [*dict.fromkeys(seen)] == ["1", "2", "3"]
    assert not run.raised
    seen.clear()
    run = Simulation(scenario).run(parse_schedule("missed-events:create:configmaps:1"))
    assert not run.unused_faults
    assert {*seen} == {"1"}


def test_partitioned_or_paused_program_continues_later() -> None:
    for fault in ("partition", "pause"):
        times = times_of(f"{fault}:create:configmaps:2")
        assert max(times[:2]) < 1
        assert 30 <= times[2] < 40, fault


def test_slow_clock_affects_time_and_timers_of_program() -> None:
    async def notes(_: dl.Request, ctx: dl.Context) -> None:
        for name in ("one", "two", "three"):
            if await ctx.client.find(CONFIG_MAP, name) is None:
                await put(ctx, name, at=f"{time.time():.3f}")
                await asyncio.sleep(70.0)

    def run(schedule: str) -> list[tuple[float, float]]:
        writes = Simulation(grows(notes)).run(parse_schedule(schedule)).writes
        return [(write.at, float(text(mapping(write.body["data"])["at"])) - 1_767_225_600.0) for write in writes]

    def is_near(found: list[tuple[float, float]], expected: list[tuple[float, float]]) -> bool:
        return sum(found, ()) == pytest.approx(sum(expected, ()), abs=0.1)

    assert is_near(run(""), [(0, 0), (70, 70), (140, 140)])
    assert is_near(run("slow-clock:create:configmaps:1"), [(0, 0), (100, 70), (200, 140)])


def test_leader_with_slow_clock_does_not_write_after_takeover() -> None:
    assert Simulation(SCENARIOS["provisioner"]).replay(parse_schedule("slow-clock:create:persistentvolumes:1")) is None


def test_premature_user_changes_unfinished_state() -> None:
    written: list[int] = []

    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}, "data": {"size": "1"}})
        await world.start(broker(keeps_its_volume))
        await world.settled()
        written.append(len(world.writes))
        await world.client.patch(CONFIG_MAP, "broker", {"data": {"size": "2"}})
        written.append(len(world.writes))
        await world.settled()
        written.append(len(world.writes))

    assert not Simulation(scenario).run().unused_faults
    assert written == [2, 2, 5]
    written.clear()
    run = Simulation(scenario).run(parse_schedule("premature:create:configmaps:1"))
    assert written == [1, 1, 5], "the program stands still until the user has done it"
    assert run.writes[-1].at < 1


def test_checks_of_premature_user_are_ignored() -> None:
    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}, "data": {"size": "1"}})
        await world.start(broker(keeps_its_volume))
        await world.settled()
        assert await world.client.find(CONFIG_MAP, "set") is not None

    simulation = Simulation(scenario)
    run = simulation.run(parse_schedule("premature:create:configmaps:1"))
    assert (run.end, run.raised, run.unused_faults) == (None, "", ())
    options = SimulationOptions(faults=(FaultKind.PREMATURE,))
    assert not Simulation(scenario, options).explore().failures, "it goes together with no other"


async def takes_turns(_: dl.Request, ctx: dl.Context) -> None:
    """Makes two at once; which of the two is first is chance."""

    async def make(name: str) -> None:
        await ctx.client.create_or_update(CONFIG_MAP, name, lambda fields: fields.update(data={"made": "true"}))

    await asyncio.gather(make("one"), make("other"))


def test_task_orders_change_order_of_steps() -> None:
    def firsts(kind: str) -> set[str]:
        runs = [
            Simulation(grows(takes_turns)).run(parse_schedule(f"order:{kind}:{seed}"))
            for seed in range(8 if NIGHTLY else 4)
        ]
        again = Simulation(grows(takes_turns)).run(parse_schedule(f"order:{kind}:0"))
        assert again == runs[0]
        return {run.writes[0].key for run in runs}

    assert Simulation(grows(takes_turns)).run().writes[0].key == "default/one"
    assert firsts("random") == firsts("priorities") == {"default/one", "default/other"}


async def trusts_its_order(_: dl.Request, ctx: dl.Context) -> None:
    """Two that count together, one of which takes for granted that the other has not begun when it reads."""
    counted: list[int] = []

    async def count(name: str, turns: int) -> None:
        before = len(counted)
        for _ in range(turns):
            await asyncio.sleep(0)
        counted[before:] = [before + 1]
        await ctx.client.create_or_update(CONFIG_MAP, name, lambda fields: fields.update(data={"n": str(len(counted))}))

    await count("zero", 0)
    await asyncio.gather(count("one", 2), count("other", 3))


def test_program_that_depends_on_task_order_is_found() -> None:
    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        await world.start(broker(trusts_its_order))
        await world.settled()

    report = Simulation(scenario, SimulationOptions(combinations=False, faults=(*OrderKind,))).explore()
    assert report.failures
    assert any(failure.replay.startswith("order:") for failure in report.failures)
    assert "tasks run in" in str(report)


def test_invariants_are_checked_after_each_write() -> None:
    async def scenario(world: Harness) -> None:
        @world.invariant
        async def the_volume_is_no_smaller_than_the_set(client: dl.Client) -> None:
            volume, of_set = await client.find(CONFIG_MAP, "volume"), await client.find(CONFIG_MAP, "set")
            if volume is not None and of_set is not None:
                assert int(volume["data"]["size"]) >= int(of_set["data"]["size"]), "it does not fit"

        await grows(loses_a_volume)(world)

    simulation = Simulation(scenario)
    failure = simulation.replay(parse_schedule("crash-before:update:configmaps:1"))
    assert failure is not None
    assert [problem.oracle for problem in failure.problems] == [Oracle.INVARIANT]
    (problem,) = failure.problems
    assert "it does not fit" in problem.text
    assert "after create configmaps default/set" in problem.text
    assert simulation.replay(()) is None


@pytest.mark.parametrize(
    ("schedule", "codes"),
    [
        ("conflict:create:configmaps:1", [409, 201]),
        ("server-error:create:configmaps:1", [500, 201]),
        ("busy:create:configmaps:1", [429, 201]),
        ("lost-request:create:configmaps:1", [0, 201]),
        ("lost-response:create:configmaps:1", [0, 201]),
        ("crash-before:create:configmaps:1", [0, 201]),
        ("crash-after:create:configmaps:1", [201, 201]),
    ],
)
def test_each_fault_has_effect(schedule: str, codes: list[int]) -> None:
    run = Simulation(grows(keeps_its_volume)).run(parse_schedule(schedule))
    assert not run.unused_faults
    assert [write.code for write in run.writes][:2] == codes
    volumes = [write for write in run.writes if write.key == "default/volume" and write.verb == "create"]
    assert len(volumes) == (1 if schedule.startswith(("lost-response", "crash-after")) else 2), "carried out, or not"


def cleans_up(*, by_name: bool) -> Reconcile:
    """Deletes the volume of a broker that is deleted, as the cache shows it."""

    async def reconcile(_: dl.Request, ctx: dl.Context) -> None:
        present = await ctx.client.find(CONFIG_MAP, "broker")
        if present is None:
            return
        if present.deletion_timestamp is None:
            present = await ctx.client.add_finalizer(CONFIG_MAP, present, "example.com/volume")
            if await ctx.client.find(CONFIG_MAP, "volume") is None:
                await ctx.client.create(CONFIG_MAP, {"metadata": {"name": "volume"}})
            return
        client = ctx.client.live if by_name else ctx.client
        if await client.find(CONFIG_MAP, "volume") is not None:
            await client.delete(CONFIG_MAP, "volume")
        await ctx.client.remove_finalizer(CONFIG_MAP, present, "example.com/volume")

    return reconcile


def comes_back(function: Reconcile) -> Scenario:
    """A broker is deleted, and another one of its name is made."""

    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        await world.start(broker(function))
        await world.settled()
        await world.client.delete(CONFIG_MAP, "broker")
        await world.settled()
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        await world.settled()

    return scenario


@pytest.mark.nightly
def test_stale_restart_deletes_new_object() -> None:
    """The pattern of pravega/zookeeper-operator#312: the old broker is seen being deleted, the new volume goes."""
    report = Simulation(
        comes_back(cleans_up(by_name=True)),
        SimulationOptions(combinations=False, faults=(FaultKind.STALE,), max_failures=1),
    ).explore()
    (failure,) = report.failures
    assert failure.replay == "stale:create:configmaps:2:5"
    assert [problem.oracle for problem in failure.problems] == [Oracle.RECREATED]
    assert "configmaps default/volume was deleted and recreated" in str(failure)
    wrong = next(write for write in failure.run.writes if write.reason is not None and write.reason.unseen)
    assert (wrong.verb, wrong.key) == ("delete", "default/volume")
    assert wrong.reason is not None
    (trigger,) = wrong.reason.triggers
    seen = int(trigger.removeprefix("informer initial ConfigMap default/broker (").removesuffix(")"))
    assert wrong.reason.unseen[0] == f"configmaps default/volume (deleted {seen + 1}, {seen + 5})"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("broker", "create:configmaps:3"),
        pytest.param("provisioner", "create:persistentvolumes:1", marks=pytest.mark.nightly),
    ],
)
def test_each_past_state_is_shown_once(name: str, write: str) -> None:
    """A restart that is left out goes as the one that shows the same state did; the others go other ways."""
    simulation = Simulation({**SCENARIOS, "broker": grows(loses_a_volume)}[name])
    traces: dict[int, tuple[str, ...]] = {}
    states: set[int] = set()
    for behind in range(1, 14 if NIGHTLY else 10):
        run = simulation.run(parse_schedule(f"stale:{write}:{behind}"))
        state = max((past for pasts in run.pasts for past in pasts if past <= behind), default=1)
        traces[behind] = run.trace
        assert run.trace == traces[state]
        states.add(state)
    assert 2 < len({*traces.values()}) <= len(states) < len(traces)


def test_delete_with_uid_is_safe_after_stale_restart() -> None:
    simulation = Simulation(comes_back(cleans_up(by_name=False)))
    stale = [f"stale:create:configmaps:2:{behind}" for behind in share(REVISIONS)]
    assert not any(simulation.replay(parse_schedule(schedule)) for schedule in stale)


async def leaves_work_undone(_: dl.Request, ctx: dl.Context) -> None:
    """Takes any error for the end of it."""
    try:
        await put(ctx, "made", done="true")
    except dl.ApiError as error:
        raise dl.TerminalError("given up") from error


def test_failed_check_of_scenario_is_failure() -> None:
    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        await world.start(broker(leaves_work_undone))
        await world.settled()
        assert await world.client.find(CONFIG_MAP, "made") is not None, "it was given up"

    report = Simulation(scenario, SimulationOptions(combinations=False, faults=(FaultKind.CONFLICT,))).explore()
    assert {problem.oracle for failure in report.failures for problem in failure.problems} == {Oracle.SCENARIO}
    assert "it was given up" in str(report)


async def never_ends(_: dl.Request, ctx: dl.Context) -> None:
    await put(ctx, "made", number=str(random.random()))
    raise RuntimeError("again")


async def writes_at_once(_: dl.Request, ctx: dl.Context) -> None:
    """Never ends, and never waits: what it writes asks for it again."""
    await put(ctx, "broker", number=str(random.random()))


def test_busy_loop_in_virtual_time_is_detected() -> None:
    with pytest.raises(BrokenReferenceError) as caught:
        Simulation(grows(writes_at_once)).explore()
    assert caught.value.problem.oracle is Oracle.SETTLES
    assert "broker" in str(caught.value.problem)


def test_scenario_that_fails_without_faults_is_reported() -> None:
    with pytest.raises(BrokenReferenceError) as caught:
        Simulation(grows(never_ends)).explore()
    assert caught.value.problem.oracle is Oracle.SETTLES


async def does_not_stop(world: Harness) -> None:
    async def reconcile(_: dl.Request, __: dl.Context) -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1000)

    options = dl.ManagerOptions(preflight=False, drain_timeout=1, shutdown_timeout=2)
    program = await world.start(dl.controller(CONFIG_MAP)(reconcile), options=options)
    await world.client.create(CONFIG_MAP, {"metadata": {"name": "a"}})
    await world.advance(1)
    await program.stop()


def test_program_that_does_not_stop_in_time_is_reported() -> None:
    with pytest.raises(BrokenReferenceError) as caught:
        Simulation(does_not_stop).explore()
    assert caught.value.problem.oracle is Oracle.SCENARIO
    assert "ShutdownTimeoutError" in str(caught.value.problem)


SECRET = dl.kinds.SECRET


async def keeps_a_password(_: dl.Request, ctx: dl.Context) -> None:
    """Writes a password, and another one if it finds one that it has not noted."""
    noted = await ctx.client.find(CONFIG_MAP, "noted") is not None
    present = await ctx.client.find(SECRET, "password") is not None
    if not present or not noted:
        word = "cGxhbnRlZC1hZ2Fpbg==" if present else "cGxhbnRlZA=="
        await ctx.client.apply(SECRET, {"metadata": {"name": "password"}, "data": {"it": word}})
    await put(ctx, "noted", PASSWORD="planted" * (1 + present), plain="token: planted")


def test_report_contains_no_secrets() -> None:
    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        controller = dl.controller(CONFIG_MAP, name="broker", writes=[CONFIG_MAP, SECRET])
        await world.start(controller(only("broker", keeps_a_password)))
        await world.settled()
        found = (await world.client.get(SECRET, "password"))["data"]["it"]
        assert found == "cGxhbnRlZA==", f"password={found}"

    options = SimulationOptions(combinations=False, faults=(FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER))
    simulation = Simulation(scenario, options)
    report = simulation.explore()
    told = f"{report} {report!r} {simulation.reference} {[failure.run.end for failure in report.failures]}"
    problems = [problem for failure in report.failures for problem in failure.problems]
    assert {problem.oracle for problem in problems} == {Oracle.SCENARIO, Oracle.END_STATE}
    assert "v1/ConfigMap default/noted: data.PASSWORD has a different redacted value" in told
    assert "planted" not in told
    assert "cGxhbnRlZ" not in told


def test_kind_deleted_by_scenario_is_not_compared() -> None:
    crd = dl.kinds.CUSTOM_RESOURCE_DEFINITION

    async def scenario(world: Harness) -> None:
        names = {"plural": "widgets", "kind": "Widget"}
        schema = {"openAPIV3Schema": {"type": "object"}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        spec: dict[str, Any] = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
        await world.client.create(crd, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
        await world.client.wait_for(crd, "widgets.example.com", dl.wait.established())
        widget = dl.ResourceType[dl.Resource]("example.com", "v1", "Widget", "widgets")

        @dl.controller(CONFIG_MAP, writes=[widget])
        async def makes(request: dl.Request, ctx: dl.Context) -> None:
            if request.name == "broker" and await ctx.client.live.find(widget, "made") is None:
                await ctx.client.create(widget, {"metadata": {"name": "made"}})

        replica = await world.start(makes)
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        await world.settled()
        await replica.stop()
        await world.client.delete(crd, "widgets.example.com")

    run = Simulation(scenario).run()
    assert not run.raised
    assert run.end is not None
    assert {kind for kind, _ in run.end.objects} == {"v1/ConfigMap"}


@pytest.mark.nightly
def test_unused_faults_are_counted() -> None:
    async def gives_up(_: dl.Request, ctx: dl.Context) -> None:
        try:
            for name in ("first", "second"):
                if await ctx.client.find(CONFIG_MAP, name) is None:
                    await ctx.client.create(CONFIG_MAP, {"metadata": {"name": name}})
        except dl.ApiError as error:
            raise dl.TerminalError("given up: the second is never made") from error

    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        await world.start(broker(gives_up))
        await world.settled()

    refused = (FaultKind.CONFLICT, FaultKind.LOST_RESPONSE, FaultKind.SERVER_ERROR)
    singles = Simulation(scenario, SimulationOptions(combinations=False, max_failures=100, faults=refused)).explore()
    assert singles.complete
    assert not singles.unused_faults
    both = Simulation(scenario).run(parse_schedule("conflict:create:configmaps:1,lost-response:create:configmaps:2"))
    assert both.unused_faults == (WriteName("create", "configmaps", occurrence=2),)
    report = Simulation(scenario, SimulationOptions(runs=singles.runs + 20, max_failures=100, faults=refused)).explore()
    assert report.unused_faults > 0
    assert f"{report.unused_faults} faults met no write" in str(report)


RUN = """
from deltaloop.simulation import Simulation, parse_schedule
from tests.simulation.test_simulator import grows, loses_a_volume

run = Simulation(grows(loses_a_volume)).run(parse_schedule("crash-after:create:configmaps:1"))
print(run.trace, sorted(run.end.objects.items()))
"""


@pytest.mark.nightly
@pytest.mark.real_time
def test_result_is_equal_in_other_processes() -> None:
    other_hashes = {**os.environ, "PYTHONHASHSEED": "1" if sys.flags.hash_randomization else "2"}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, env=other_hashes, capture_output=True, check=True, text=True, timeout=60)
    run = Simulation(grows(loses_a_volume)).run(parse_schedule("crash-after:create:configmaps:1"))
    assert run.end is not None
    assert done.stdout == f"{run.trace} {sorted(run.end.objects.items())}\n"


def test_search_respects_budget() -> None:
    report = Simulation(grows(keeps_its_volume), SimulationOptions(runs=5)).explore()
    assert (report.runs, report.complete) == (5, False)
    assert "not all tried" in str(report)
    assert Simulation(grows(keeps_its_volume), SimulationOptions(seconds=0.0)).explore().runs == 3


def leads(name: str, *, looks_again: bool) -> Callable[[dl.Client], Awaitable[None]]:
    """A program with an election of its own: it takes the Lease if nobody has renewed it, and writes twice a round."""

    async def main(client: dl.Client) -> None:
        clock = asyncio.get_running_loop().time

        async def write(number: int) -> None:
            if looks_again and clock() - renewed_at > 10.0:
                return
            await client.patch(CONFIG_MAP, "broker", {"data": {f"write-{number}": "done"}})

        while True:
            lease = await client.find(dl.kinds.LEASE, "leader")
            spec: Mapping[str, object] = {} if lease is None else lease["spec"]
            renewed_at = float(
                str(spec.get("leaseDurationSeconds") or 0)
            )  # seconds of the loop, for want of a finer field
            if spec.get("holderIdentity") == name or clock() - renewed_at > 15.0 or lease is None:
                fields: dict[str, Any] = {
                    "spec": {"holderIdentity": name, "leaseDurationSeconds": max(1, int(clock()))}
                }
                if lease is None:
                    body: dict[str, Any] = fields | {"metadata": {"name": "leader"}}
                    await client.create(dl.kinds.LEASE, body)
                else:
                    fields["metadata"] = {"resourceVersion": lease.resource_version}
                    await client.patch(dl.kinds.LEASE, "leader", fields)
                renewed_at = clock()
                await write(1)
                await write(2)
            await asyncio.sleep(5.0)

    return main


def two_leaders(*, looks_again: bool) -> Scenario:
    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        await world.run(leads("one", looks_again=looks_again))
        await world.advance(2.0)
        await world.run(leads("two", looks_again=looks_again))
        await world.advance(40.0)
        await world.crash()

    return scenario


def test_write_after_takeover_is_reported() -> None:
    schedule = parse_schedule("pause:patch:configmaps:3")
    failure = Simulation(two_leaders(looks_again=False)).replay(schedule)
    assert failure is not None
    assert [problem.oracle for problem in failure.problems] == [Oracle.LEADERSHIP]
    assert "replica-1 wrote after it lost the lease default/leader: patch configmaps default/broker" in str(failure)
    assert Simulation(two_leaders(looks_again=True)).replay(schedule) is None


def says_ready(*, waits: bool) -> Scenario:
    """A Pod belongs to a Deployment; twenty seconds after it was made it is ready, and a client says so."""

    status = dl.Permission(dl.kinds.DEPLOYMENT, verbs=("patch",), subresource="status")

    @dl.controller(dl.kinds.DEPLOYMENT, name="parent", writes=[status, dl.kinds.POD])
    async def parent(request: dl.Request, ctx: dl.Context) -> dl.Result | None:
        owner = await ctx.client.get(dl.kinds.DEPLOYMENT, request.name)
        pod = await ctx.client.find(dl.kinds.POD, request.name)
        if pod is None:
            metadata = {"name": request.name, "namespace": request.namespace}
            made: dict[str, Any] = {"metadata": metadata, "spec": {"containers": [{"name": "a", "image": "a"}]}}
            dl.set_owner_reference(made, owner)
            await ctx.client.create(dl.kinds.POD, made)
            await asyncio.sleep(25.0)
        elif waits and not object_status(pod).is_current:
            return dl.Result(requeue_after=5.0)
        said = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]}
        await ctx.client.patch(dl.kinds.DEPLOYMENT, request.name, {"status": said}, subresource="status")
        return None

    async def scenario(world: Harness) -> None:
        async def pods_get_ready() -> None:
            for _ in range(200):
                await asyncio.sleep(1.0)
                pod = await world.client.find(dl.kinds.POD, "a")
                if pod is not None and not pod.get("status", {}).get("conditions"):
                    await asyncio.sleep(20.0)
                    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                    await world.client.patch(dl.kinds.POD, "a", {"status": status}, subresource="status")
                    return

        template = {"metadata": {"labels": {"a": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
        spec: dict[str, Any] = {"selector": {"matchLabels": {"a": "a"}}, "template": template}
        await world.client.create(dl.kinds.DEPLOYMENT, {"metadata": {"name": "a"}, "spec": spec})
        await world.start(parent)
        kubelet = asyncio.create_task(pods_get_ready())
        await world.settled()
        await world.advance(60.0)
        await kubelet
        await world.settled()

    return scenario


def test_early_ready_condition_is_reported() -> None:
    schedule = parse_schedule("crash-after:create:pods:1")
    failure = Simulation(says_ready(waits=False)).replay(schedule)
    assert failure is not None
    assert [problem.oracle for problem in failure.problems] == [Oracle.READY]
    assert "apps/v1/Deployment default/a reports Ready while v1/Pod default/a is" in str(failure)
    assert Simulation(says_ready(waits=True)).replay(schedule) is None


def test_plain_function_of_crashed_program_ends_silently(caplog: pytest.LogCaptureFixture) -> None:
    @dl.controller(CONFIG_MAP, name="plain", writes=[CONFIG_MAP])
    def plain(request: dl.Request, ctx: dl.Context) -> None:
        if ctx.wait(ctx.client.find(CONFIG_MAP, "made")) is None:
            ctx.wait(ctx.client.create(CONFIG_MAP, {"metadata": {"name": "made"}}))

    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        await world.start(plain)
        await world.settled()

    run = Simulation(scenario).run(parse_schedule("crash-after:create:configmaps:1"))
    assert len(run.writes) == 1
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_declared_kinds_are_compared_without_writes() -> None:
    secret = dl.kinds.SECRET

    @dl.controller(
        CONFIG_MAP, name="idle", writes=[dl.Permission(secret, verbs=("delete",))], children=[dl.kinds.SERVICE]
    )
    async def idle(_: dl.Request, __: dl.Context) -> None:
        """Write nothing: in another run it might."""

    async def scenario(world: Harness) -> None:
        await world.client.create(secret, {"metadata": {"name": "made-by-others"}})
        await world.start(idle)
        await world.settled()

    end = Simulation(scenario).reference.end
    assert end is not None
    assert ("v1/Secret", "default/made-by-others") in end.objects
    assert ("v1/Service", "default/kubernetes") in end.objects


def test_kinds_of_reference_are_compared_in_all_runs() -> None:
    async def gives_up(_: dl.Request, ctx: dl.Context) -> None:
        try:
            if await ctx.client.find(CONFIG_MAP, "first") is None:
                await ctx.client.create(CONFIG_MAP, {"metadata": {"name": "first"}})
        except dl.ApiError as error:
            raise dl.TerminalError("given up: the second is never made") from error
        if await ctx.client.find(SECRET, "second") is None:
            await ctx.client.create(SECRET, {"metadata": {"name": "second"}})

    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        controller = dl.controller(CONFIG_MAP, name="broker", writes=[CONFIG_MAP, SECRET])
        await world.start(controller(only("broker", gives_up)))
        await world.settled()

    simulation = Simulation(scenario)
    assert simulation.reference.kinds == ("v1/ConfigMap", "v1/Secret")
    run = simulation.run(parse_schedule("conflict:create:configmaps:1"))
    assert [write.resource for write in run.writes] == ["configmaps"]
    assert run.kinds == simulation.reference.kinds


def test_stalled_run_is_failure_with_schedule() -> None:
    async def scenario(world: Harness) -> None:
        replica = await world.start(broker(twice))
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}})
        await world.settled()
        await replica.stop()
        if replica.identity != replica.name:  # it has crashed and come back
            await asyncio.get_running_loop().create_future()

    async def twice(request: dl.Request, ctx: dl.Context) -> None:
        found = await ctx.client.get(CONFIG_MAP, request.name)
        if not found.get("data"):
            await ctx.client.patch(CONFIG_MAP, request.name, {"data": {"size": "1"}})

    simulation = Simulation(scenario)
    name = simulation.reference.writes[0].name
    fault = ScheduledFault(kind=FaultKind.CRASH_BEFORE, write=name)
    failure = simulation.replay((fault,))
    assert failure is not None
    (problem,) = failure.problems
    assert "StalledError" in problem.text
    assert str(fault) in failure.replay
