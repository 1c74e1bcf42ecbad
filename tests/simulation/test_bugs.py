"""Rebuilt bugs: each schedule reproduces the bug, and the fixed version passes."""

from __future__ import annotations

import pytest
from examples.simulation.bugs.__main__ import BUGS, main
from examples.simulation.bugs.parts import Bug

from deltaloop.simulation import Simulation, parse_schedule
from tests.nightly import by_day

ONE_OF_EACH_PATTERN = [*{bug.pattern: bug for bug in BUGS}.values()]
OF_ALL = pytest.mark.parametrize("bug", by_day(BUGS, ONE_OF_EACH_PATTERN), ids=lambda bug: bug.name)


@OF_ALL
def test_schedule_reproduces_bug(bug: Bug) -> None:
    failure = Simulation(bug.scenario(fixed=False)).replay(parse_schedule(bug.replay))
    assert failure is not None
    assert not failure.run.unused_faults


@OF_ALL
def test_fixed_program_passes(bug: Bug) -> None:
    failure = Simulation(bug.scenario(fixed=True)).replay(parse_schedule(bug.replay))
    assert failure is None, str(failure)


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("zookeeper-312", "stale:create:configmaps:2:5,lost-response:delete:configmaps:4"),
        ("zookeeper-314", "stale:create:configmaps:6:5,server-error:delete:configmaps:3"),
    ],
)
def test_fixed_runtime_bugs_stay_fixed(name: str, faults: str) -> None:
    """A deletion of unknown outcome made the successor visible to a program whose cache showed the past."""
    (bug,) = [bug for bug in BUGS if bug.name == name]
    assert Simulation(bug.scenario(fixed=True)).replay(parse_schedule(faults)) is None


def test_bug_reports_are_unique() -> None:
    assert len({bug.link for bug in BUGS}) == len({bug.name for bug in BUGS}) == len(BUGS)
    assert {bug.pattern for bug in BUGS} == {"intermediate", "stale", "unobserved"}


@pytest.mark.nightly
@pytest.mark.real_time
def test_bug_table_contains_result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["bugs", "rabbitmq-782", "--runs", "15"])
    assert main() == 0
    _, line = capsys.readouterr().out.splitlines()
    assert line.split()[:2] == ["rabbitmq-782", "intermediate"]
    assert "1 fault: crash-before:update:configmaps:1" in line
    assert line.endswith(" no alarm")
