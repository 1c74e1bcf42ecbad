"""The soak in short forms, and that it sees what is left behind."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from lab.soak.report import picture, table
from lab.soak.run import Course, soak
from lab.soak.slope import BOUNDS, SHORT_BOUNDS, Bound, slope, trends
from lab.soak.year import DAY, HOUR, Calendar, Year, virtual_soak

DAYS = Calendar(
    length=3.5 * DAY,
    month=DAY,
    pause=6 * HOUR,
    trouble=DAY / 4,
    period=DAY,
    lease=8 * HOUR,
    plans=3,
    looks=4,
)
VISITS = replace(
    DAYS, length=DAY, month=DAY / 3, pause=HOUR, trouble=HOUR, period=2 * HOUR, looks=1, troubles=("visits",)
)


def growing(outcome: Year) -> set[str]:
    found = trends(outcome.samples, outcome.times, SHORT_BOUNDS)
    return {each.quantity for each in found if not each.holds}


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="deltaloop")  # records that are kept keep what they are about


@pytest.mark.nightly
async def test_virtual_soak_does_not_grow(tmp_path: Path) -> None:
    outcome = await virtual_soak(DAYS, tmp_path)
    assert outcome.missing == []
    assert growing(outcome) == set()
    first, last = outcome.samples[0]["all"], outcome.samples[-1]["all"]
    assert last["tasks"] <= first["tasks"] + 3
    assert last["watches"] == first["watches"]
    assert outcome.happened["terms"] > 1
    assert {"server restarted", "410s", "tokens revoked", "leader restarted"} <= {*outcome.happened}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("leak", "grows"), [("handlers", "tasks"), pytest.param("tasks", "tasks", marks=pytest.mark.slow)]
)
async def test_leak_is_detected_within_a_day(tmp_path: Path, leak: str, grows: str) -> None:
    assert grows in growing(await virtual_soak(replace(VISITS, leak=leak), tmp_path))


@pytest.mark.skipif(os.environ.get("DELTALOOP_SOAK") != "1", reason="takes a minute: make -C lab test-soak")
@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize(("leak", "seen"), [("", set[str]()), ("threads", {"threads"}), ("tasks", {"tasks"})])
async def test_soak_of_processes_detects_leaks_only(tmp_path: Path, leak: str, seen: set[str]) -> None:
    course = Course(
        seconds=14.0,
        round=1.0,
        pause=0.05,
        first_pause=0.05,
        plans=5,
        settle=20.0,
        period=1.0,
        leak=leak,
        troubles=("visit",),
    )
    outcome = await soak(course, tmp_path)
    assert outcome.missing == []
    found = {each.quantity for each in trends(outcome.samples, outcome.times, SHORT_BOUNDS) if not each.holds}
    assert seen <= found
    assert bool(seen) == bool(found)


def test_slope_ignores_outliers() -> None:
    line = [(float(at), 3.0 * at) for at in range(40)]
    bent = [(at, 1000.0 if at % 5 == 0 else value) for at, value in line]
    assert slope(line) == 3.0
    assert slope(bent) == pytest.approx(3.0, rel=0.15)
    assert slope(line[:1]) == 0.0


def test_growth_is_measured_in_second_half() -> None:
    times = [float(at) for at in range(0, 3600, 60)]
    filling = [{"one": {"rss": min(at, 1800.0) * 100, "tasks": 5.0, "unbound": at}} for at in times]
    assert [(each.quantity, each.holds) for each in trends(filling, times)] == [("rss", True), ("tasks", True)]
    leaking = [{"one": {"rss": 100_000 + at * 2, "tasks": at / 600}} for at in times]
    found = trends(leaking, times, {"rss": Bound(10.0, 0.05), "tasks": Bound(1.0)})
    assert [(each.quantity, each.holds, round(each.an_hour)) for each in found] == [
        ("rss", True, 7200),
        ("tasks", False, 6),
    ]
    assert "| one | tasks |" in table(found)
    assert table(found).count("GROWS") == 1
    assert picture(times, leaking).count("<polyline") == 2


def test_each_leak_has_bound() -> None:
    assert {*SHORT_BOUNDS} <= {*BOUNDS}
