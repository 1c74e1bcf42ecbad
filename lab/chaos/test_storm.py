"""The storm in a short form, and that it would see what must not be."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path
from typing import Any, cast

import pytest

from deltaloop.runtime import Context, Request
from lab.chaos.storm import run, storm_once
from lab.chaos.storm_journal import Journal, Run, read_journals, run_twice_at_once
from lab.chaos.storm_load import Report, Storm
from lab.chaos.storm_processes import storm_of_processes


@pytest.mark.nightly
@pytest.mark.real_time
async def test_storm_converges_despite_failures_and_restarts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="deltaloop")  # records that are kept keep tracebacks, and those memory
    report = await run(objects=40, restarts=2, limit=15.0)
    assert report.missing == [], report.lines()
    assert (report.server_restarts, report.leader_restarts, report.leader_crashes) == (1, 2, 1)
    assert report.tries.total() >= 60
    assert max(report.tries) > 1
    assert len(report.lines()) == 6


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.real_time
async def test_standby_process_takes_over_from_killed_leader() -> None:
    report = await storm_of_processes(objects=40, ends=[signal.SIGKILL], limit=45.0, lease="1.5,1,0.1")
    assert report.missing == [], report.lines()
    assert (report.kills, len(report.takeovers)) == (1, 1)
    assert report.reconciles >= 80
    assert "leader killed 1" in report.lines()[3]


@pytest.mark.real_time
async def test_reconciler_that_skips_object_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Storm.bring_about

    async def forgets(self: Storm, request: Request, ctx: Context) -> None:
        if request.name != "o-3":
            await right(self, request, ctx)

    monkeypatch.setattr(Storm, "bring_about", forgets)
    report = Report(5)
    await storm_once(report, seed=1, restarts=0, limit=1.0)
    assert report.missing == ["not everything had converged after 1 s"]


async def test_concurrent_reconciles_of_key_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(self: Storm, request: Request, ctx: Context) -> None:
        await asyncio.sleep(1.0)

    class NoContext:
        attempts = 2
        triggers = ()

    monkeypatch.setattr(Storm, "bring_about", slow)
    storm = Storm(Report(1), seed=1)
    requests = [Request("default", name) for name in ("a", "b", "a")]
    await asyncio.gather(*(cast("Any", storm.controller()(each, cast("Any", NoContext()))) for each in requests))
    assert storm.twice == {"default/a"}
    assert not storm.running


async def test_replicas_without_election_are_detected_in_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(self: Storm, request: Request, ctx: Context) -> None:
        await asyncio.sleep(0.01)

    class NoContext:
        attempts = 1
        triggers = ()

    clock = asyncio.get_running_loop().time
    monkeypatch.setattr("lab.chaos.storm_journal.time.monotonic", clock)
    monkeypatch.setattr(Storm, "bring_about", slow)
    journals = [Journal(tmp_path / f"{name}.journal") for name in ("one", "two")]
    controllers = [Storm(Report(1), seed=1, journal=journal).controller() for journal in journals]
    for pause, name in ((1.0, "alternates"), (0.005, "overlaps")):
        first = asyncio.ensure_future(cast("Any", controllers[0](Request("default", name), cast("Any", NoContext()))))
        await asyncio.sleep(pause)
        await cast("Any", controllers[1](Request("default", name), cast("Any", NoContext())))
        await first
    for journal in journals:
        journal.close()
    runs = read_journals(tmp_path, {})
    assert [(run.replica, run.succeeded) for run in runs] == [("one", True)] * 2 + [("two", True)] * 2
    assert run_twice_at_once(runs) == {"default/overlaps"}


def test_killed_reconcile_ends_with_its_process(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "one.journal")
    journal.began("a", attempt=1, wait=0.5)
    journal.close()
    began_at = read_journals(tmp_path, {})[0].began_at
    (killed,) = read_journals(tmp_path, {"one": began_at + 5.0})
    assert (killed.ended_at, killed.succeeded) == (began_at + 5.0, False)

    def successor(after: float) -> Run:
        return Run(replica="two", key="a", began_at=began_at + after, ended_at=began_at + 9.0)

    assert run_twice_at_once([killed, successor(4.9)]) == {"a"}
    assert run_twice_at_once([killed, successor(5.0)]) == set()
    assert run_twice_at_once([*read_journals(tmp_path, {}), successor(100.0)]) == {"a"}  # nobody saw it die
