"""A program that draws names: that it draws others after a crash is no alarm, what is left over of them is one."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
import pytest

import deltaloop as dl
from deltaloop.crds import generate_crd
from deltaloop.simulation import Oracle, Simulation, SimulationOptions, parse_schedule
from deltaloop.simulation.core.reports import report_fields, report_page
from deltaloop.simulation.made_scenario import made_scenario
from deltaloop.testing.injected_faults.core.program_writes import FaultKind

CLAIM = dl.kinds.PERSISTENT_VOLUME_CLAIM
CRASHES = SimulationOptions(combinations=False, faults=(FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER))


class CacheStatus(msgspec.Struct):
    """What there is.

    Attributes:
        claim: Its volume's.
    """

    claim: str = ""


@dl.custom_resource(group="example.com", version="v1", storage=True)
class Cache(msgspec.Struct, kw_only=True):
    """A cache with a volume."""

    metadata: dl.ObjectMeta
    status: CacheStatus | None = None


def operator(*, fixed: bool) -> dl.Controller:
    """Give each Cache a volume with a random name. The fixed version stores the name first."""

    @dl.controller(Cache, name="cache", writes=[CLAIM])
    async def cache(request: dl.Request, ctx: dl.Context) -> None:
        found = await ctx.client.find(Cache, request.name, namespace=request.namespace)
        if found is None:
            return
        name = found.status.claim if found.status is not None else ""
        if name and not fixed:
            return
        if not name:
            name = f"{request.name}-{secrets.token_hex(3)}"
            if fixed:
                async with ctx.status(found) as status:
                    status["claim"] = name
                return
        if await ctx.client.find(CLAIM, name, namespace=request.namespace) is None:
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            claim: dict[str, Any] = {"metadata": {"name": name, "namespace": request.namespace}, "spec": spec}
            dl.set_controller_reference(claim, found)
            await ctx.client.create(CLAIM, claim, namespace=request.namespace)
        async with ctx.status(found) as status:
            status["claim"] = name

    return cache


def simulation_of(*, fixed: bool) -> Simulation:
    return Simulation(made_scenario([operator(fixed=fixed)], [generate_crd(Cache)]), CRASHES)


@pytest.mark.nightly
def test_leftover_after_restart_is_found_by_generated_scenario() -> None:
    report = simulation_of(fixed=False).explore()
    (failure,) = report.failures
    assert [(problem.oracle, str(problem)) for problem in failure.problems] == [
        (Oracle.END_STATE, "v1/PersistentVolumeClaim default/sample-<2> exists, but must not exist")
    ]
    assert {name.occurrence for name in report.writes} == {1, 2}, "the sample is made twice"
    told = str(failure)
    assert told.count("the user: create caches.example.com default/sample") == 2
    deleted, crash = (told.index(text) for text in ("the user: delete caches.example.com", "<- the program crashes"))
    assert deleted < crash
    fields: Any = report_fields(report)
    steps = [step["write"].split()[0] for step in fields["failures"][0]["user"]]
    assert steps == ["apply", "create", "patch", "delete", "create"]
    assert "<td>the user</td><td></td><td>delete caches.example.com" in report_page(report, title="a")


@pytest.mark.nightly
def test_program_that_stores_random_name_has_no_failures() -> None:
    simulation = simulation_of(fixed=True)
    assert not simulation.explore().failures
    ends = [simulation.run(parse_schedule(text)).end for text in ("", "crash-before:patch:caches.example.com/status:2")]
    assert ends[0] != ends[1], "although it draws another name"
