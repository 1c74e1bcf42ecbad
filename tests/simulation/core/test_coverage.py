"""What was tried."""

from __future__ import annotations

from deltaloop.simulation.core.coverage import count_struck, coverage_text
from deltaloop.simulation.core.oracles import SimulationRun
from deltaloop.simulation.core.schedules import ON_REQUEST, WEBHOOK_FAULTS, FaultKind, parse_schedule
from deltaloop.testing.core.program_writes import WriteName

CREATE = WriteName("create", "configmaps")


def run(*unstruck: WriteName) -> SimulationRun:
    return SimulationRun(end=None, writes=(), unstruck=unstruck)


def test_only_what_met_its_write_counts() -> None:
    counts: dict[WriteName, dict[FaultKind, int]] = {CREATE: {}}
    schedule = parse_schedule("lost:create:configmaps:1,busy:create:secrets:1,order:random:3")
    count_struck(counts, schedule, run(WriteName("create", "secrets")))
    count_struck(counts, schedule, run(WriteName("create", "secrets")))
    assert counts == {CREATE: {FaultKind.LOST: 2}}


def test_the_table_shows_what_was_never_tried() -> None:
    head, row = coverage_text({CREATE: {FaultKind.LOST: 12}}).splitlines()
    kinds = [kind for kind in FaultKind if kind not in WEBHOOK_FAULTS | ON_REQUEST]
    cells = row.removeprefix("1st create of configmaps").split()
    assert cells == [("12" if kind is FaultKind.LOST else ".") for kind in kinds]
    assert "crash before" in head
    assert "webhooks" not in head, "where nobody serves any, there is nothing to try"


def test_faults_of_webhooks_have_columns_where_they_were_tried() -> None:
    head, row = coverage_text({CREATE: {FaultKind.WEBHOOKS_SLOW: 3}}).splitlines()
    assert "webhooks-slow" in head
    assert "webhooks-away" not in head
    assert row.split().count("3") == 1
