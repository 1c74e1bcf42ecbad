"""The storm in a short form, and that it would see what must not be."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from deltaloop.runtime import Context, Request
from tests.chaos.storm import Report, Storm, run, storm_once


@pytest.mark.real_time
async def test_everything_converges_through_failures_and_restarts() -> None:
    report = await run(objects=40, restarts=2, limit=15.0)
    assert report.missing == [], report.lines()
    assert (report.server_restarts, report.leader_restarts) == (1, 2)
    assert report.tries.total() >= 60
    assert max(report.tries) > 1
    assert len(report.lines()) == 6


@pytest.mark.real_time
async def test_a_reconciler_that_forgets_an_object_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Storm.bring_about

    async def forgets(self: Storm, request: Request, ctx: Context) -> None:
        if request.name != "o-3":
            await right(self, request, ctx)

    monkeypatch.setattr(Storm, "bring_about", forgets)
    report = Report(5)
    await storm_once(report, seed=1, restarts=0, limit=1.0)
    assert report.missing == ["not everything had converged after 1 s"]


async def test_a_key_that_runs_twice_at_once_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
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
