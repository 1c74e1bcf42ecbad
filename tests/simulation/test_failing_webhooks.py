"""Webhooks that are away, slow or wrong for a while, as faults of a simulation: what they do, and what they find."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.errors import ApiError, ForbiddenError, InternalServerError
from deltaloop.simulation import Oracle, Simulation, SimulationOptions, parse_schedule
from deltaloop.testing import Harness
from deltaloop.testing.injected_faults.core.program_writes import WEBHOOK_FAULTS, FaultKind

CONFIG_MAP = dl.kinds.CONFIG_MAP
Reconcile = Callable[[dl.Request, dl.Context], Awaitable[None]]
Scenario = Callable[[Harness], Awaitable[None]]


@dl.mutate(CONFIG_MAP, operations=["CREATE"], failure_policy="Ignore")
def complete(obj: dict[str, Any]) -> None:
    obj["data"].setdefault("size", "1")


@dl.validate(CONFIG_MAP, timeout=5)
def check(obj: dl.Resource) -> dl.FieldError | None:
    return dl.FieldError("data", "something is needed") if not obj.get("data") else None


def scenario_of(function: Reconcile, *webhooks: Any) -> Scenario:
    @dl.controller(CONFIG_MAP, name="broker", writes=[CONFIG_MAP])
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        if request.name == "broker":
            await function(request, ctx)

    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "broker"}, "data": {"of": "broker"}})
        if webhooks:
            await world.start(webhooks=webhooks)
        await world.start(reconcile)
        await world.settled()

    return scenario


async def make(ctx: dl.Context, **data: str) -> None:
    if await ctx.client.live.find(CONFIG_MAP, "made") is None:
        await ctx.client.create(CONFIG_MAP, {"metadata": {"name": "made"}, "data": {"of": "broker", **data}})


async def tries_until_it_is_done(_: dl.Request, ctx: dl.Context) -> None:
    await make(ctx, size="1")


async def trusts_the_webhook(_: dl.Request, ctx: dl.Context) -> None:
    """Leaves out what the webhook fills in; while nobody does, it stays out."""
    await make(ctx)


async def gives_up_soon(_: dl.Request, ctx: dl.Context) -> None:
    """Takes three errors of the server for a reason to leave it."""
    for _attempt in range(3):
        with suppress(InternalServerError):
            return await make(ctx, size="1")
    return None


async def takes_a_refusal_for_good(_: dl.Request, ctx: dl.Context) -> None:
    with suppress(ForbiddenError):
        await make(ctx, size="1")


async def takes_silence_for_done(_: dl.Request, ctx: dl.Context) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(3):
            await make(ctx, size="1")


AWAY, SLOW, WRONG = FaultKind.WEBHOOK_UNAVAILABLE, FaultKind.WEBHOOK_TIMEOUT, FaultKind.WEBHOOK_REJECTS


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("bug", "webhook", "found_by"),
    [
        (trusts_the_webhook, complete, {AWAY, SLOW}),
        (gives_up_soon, check, {AWAY, SLOW}),
        (takes_a_refusal_for_good, check, {WRONG}),
        (takes_silence_for_done, check, {SLOW}),
        (tries_until_it_is_done, check, set[FaultKind]()),
    ],
)
def test_seeded_bugs_are_found_by_expected_faults(bug: Reconcile, webhook: Any, found_by: set[FaultKind]) -> None:
    simulation = Simulation(scenario_of(bug, webhook))
    found = {
        kind: failure
        for kind in (FaultKind.SERVER_ERROR, AWAY, SLOW, WRONG)
        if (failure := simulation.replay(parse_schedule(f"{kind}:create:configmaps:1"))) is not None
    }
    assert {*found} == found_by, "and by no refusal of one write"
    assert {problem.oracle for failure in found.values() for problem in failure.problems} <= {Oracle.END_STATE}


@pytest.mark.parametrize(
    ("fault", "code", "first", "last"), [(AWAY, 500, 0, 60), (SLOW, 500, 5, 60), (WRONG, 403, 0, 60)]
)
def test_webhook_fault_lasts_half_a_minute(fault: FaultKind, code: int, first: float, last: float) -> None:
    answered: list[float] = []

    async def notes(request: dl.Request, ctx: dl.Context) -> None:
        try:
            await tries_until_it_is_done(request, ctx)
        except ApiError:
            answered.append(asyncio.get_running_loop().time())
            raise

    simulation = Simulation(scenario_of(notes, check))
    run = simulation.run(parse_schedule(f"{fault}:create:configmaps:1"))
    assert (run.unused_faults, run.raised, run.unsettled) == ((), "", "")
    assert run.writes[0].code == code
    assert first <= answered[0] < first + 1, "the server waits for the webhook's time limit, and no longer"
    assert {write.code for write in run.writes[:-1]} == {code}
    assert run.writes[-1].code == 201
    assert 30 <= run.writes[-1].at < last


def test_rejection_message_contains_webhook() -> None:
    told: list[str] = []

    async def notes(request: dl.Request, ctx: dl.Context) -> None:
        try:
            await tries_until_it_is_done(request, ctx)
        except ForbiddenError as error:
            told.append(str(error))
            raise

    Simulation(scenario_of(notes, check)).run(parse_schedule("webhook-rejects:create:configmaps:1"))
    assert "check.configmaps.core" in told[0]
    assert "webhooks reject all requests temporarily" in told[0]


def test_two_webhook_faults_end_in_order() -> None:
    async def makes_two(request: dl.Request, ctx: dl.Context) -> None:
        await tries_until_it_is_done(request, ctx)
        if await ctx.client.live.find(CONFIG_MAP, "other") is None:
            await ctx.client.create(CONFIG_MAP, {"metadata": {"name": "other"}, "data": {"of": "broker"}})

    simulation = Simulation(scenario_of(makes_two, check))
    text = "webhook-unavailable:create:configmaps:1,webhook-rejects:create:configmaps:2"
    run = simulation.run(parse_schedule(text))
    assert (run.unused_faults, run.raised, run.unsettled) == ((), "", "")
    assert {write.code for write in run.writes} == {500, 403, 201}
    assert simulation.judge(parse_schedule(text), run) is None
    assert run == simulation.run(parse_schedule(text)), "to the byte"


def test_webhook_faults_need_webhooks() -> None:
    options = SimulationOptions(combinations=False, faults=(FaultKind.SERVER_ERROR, AWAY))
    served = Simulation(scenario_of(trusts_the_webhook, complete), options).explore()
    assert served.complete
    assert {kind for kinds in served.coverage.values() for kind in kinds} == {*options.faults}
    assert {failure.replay.partition(":")[0] for failure in served.failures} == {"webhook-unavailable"}, "one finding"
    assert "webhooks are unavailable for 30 s, starting with the 1st create of configmaps" in str(served)
    alone = Simulation(scenario_of(tries_until_it_is_done), options).explore()
    assert alone.complete
    assert {kind for kinds in alone.coverage.values() for kind in kinds} == {FaultKind.SERVER_ERROR}
    assert not any(kind.value in str(alone) for kind in WEBHOOK_FAULTS)
