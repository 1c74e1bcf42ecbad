"""The other examples under the simulator."""

from __future__ import annotations

import pytest
from examples.simulation import ordinary

from deltaloop.simulation import Simulation, SimulationOptions
from deltaloop.simulation.core.schedules import parse_schedule
from tests.nightly import by_day

FIXED = [
    ("replicator", "stale:create:configmaps:1:8,order:priorities:130603"),
    ("replicator", "stale:delete:configmaps:1:13"),
    ("replicator", "stale:patch:configmaps:2:6"),
    ("database", "missed-events:patch:databases.example.com:2"),
    (
        "database",
        "stale:apply:statefulsets.apps:1:2,delayed-kind:apply:statefulsets.apps:14,conflict:apply:statefulsets.apps:17",
    ),
    (
        "database",
        (
            "stale:patch:databases.example.com:2:16,busy:patch:databases.example.com/status:3,"
            "delayed-kind:patch:databases.example.com/status:4"
        ),
    ),
]


@pytest.mark.parametrize("name", by_day(ordinary.SCENARIOS, ["replicator", "provisioner"]))
def test_ordinary_operator_has_no_failures(name: str) -> None:
    options = SimulationOptions(runs=6, may_differ=ordinary.MAY_DIFFER)
    report = Simulation(ordinary.SCENARIOS[name], options).explore()
    assert not report.failures
    assert not report.unused_faults
    writes = {"replicator": 11, "provisioner": 2, "sample_controller": 6, "database": 12, "database_runs": 12}
    assert {**writes, "database_webhooks": 7, "database_shards": 37}[name] == len(report.writes)


@pytest.mark.parametrize(
    ("name", "faults"),
    by_day(FIXED, FIXED[:1]),
)
def test_fixed_failures_stay_fixed(name: str, faults: str) -> None:
    assert Simulation(ordinary.SCENARIOS[name]).replay(parse_schedule(faults)) is None


@pytest.mark.nightly
def test_table_of_ordinary_operators_contains_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["ordinary", "--runs", "4", "provisioner"])
    assert ordinary.main() == 0
    assert "no alarm" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["ordinary", "nothing"])
    with pytest.raises(SystemExit):
        ordinary.main()
    assert "Use replicator, provisioner, sample_controller, database, database_runs" in capsys.readouterr().err


@pytest.mark.nightly
def test_sharded_operator_recovers_from_a_crash_during_a_hand_over() -> None:
    options = SimulationOptions(may_differ=ordinary.MAY_DIFFER)
    simulation = Simulation(ordinary.SCENARIOS["database_shards"], options)
    assert simulation.replay(parse_schedule("crash-before:patch:configmaps:1")) is None
