"""What was tried."""

from __future__ import annotations

from dataclasses import replace

from deltaloop.simulation.core.coverage import (
    Path,
    count_paths,
    count_struck,
    coverage_text,
    no_op_writes,
    paths_text,
)
from deltaloop.simulation.core.oracles import SimulationRun
from deltaloop.simulation.core.reports import SimulationReport, report_fields, report_page
from deltaloop.simulation.core.schedules import ON_REQUEST, parse_schedule
from deltaloop.testing.injected_faults.core.program_writes import (
    WEBHOOK_FAULTS,
    FaultKind,
    ProgramWrite,
    WriteName,
    WriteReason,
)

CREATE = WriteName("create", "configmaps")


def run(*unused_faults: WriteName) -> SimulationRun:
    return SimulationRun(end=None, writes=(), unused_faults=unused_faults)


def write(number: int, resource: str, reason: WriteReason | None, code: int = 201) -> ProgramWrite:
    return ProgramWrite(
        number=number,
        replica="one",
        task="t",
        at=0.0,
        verb="create",
        resource=resource,
        key="a",
        code=code,
        reason=reason,
    )


def test_path_contains_writes_and_rejections_of_one_reconcile() -> None:
    first, again, other = (
        WriteReason(reconcile="told alike", controller="login", number=1, life=life) for life in (1, 2, 3)
    )
    second = WriteReason(reconcile="told alike", controller="login", number=2)
    writes = [
        write(1, "secrets", first),
        write(2, "secrets", second, 409),  # two of them at once
        write(3, "services", first),
        write(4, "jobs", None),
        write(5, "secrets", again),  # the program has begun anew, and counts from 1
        write(6, "services", again),
        write(7, "secrets", other, 0),
    ]
    counts: dict[Path, int] = {}
    count_paths(counts, SimulationRun(end=None, writes=tuple(writes)))
    assert counts == {
        ("login", "create secrets", "create services"): 2,
        ("login", "create secrets (409)"): 1,
        ("login", "create secrets (no response)"): 1,
    }
    count_paths(counts, SimulationRun(end=None, writes=(*writes[:1], *writes[2:3])))
    assert paths_text(counts).splitlines()[0] == "3  login: create secrets, create services"


def test_writes_without_change_are_counted() -> None:
    def stored(verb: str, key: str, version: str, code: int = 200) -> ProgramWrite:
        plain = write(1, "secrets", None, code)
        kept = {"metadata": {"resourceVersion": version}} if version else {}
        return replace(plain, verb=verb, key=key, stored=kept)

    writes = (
        stored("create", "a", "2", 201),
        stored("update", "a", "2"),
        stored("update", "b", "2"),  # another object
        stored("update", "a", "3"),
        stored("update", "a", "", 409),
        stored("update", "a", "3"),
        stored("delete", "a", ""),
        stored("delete", "a", ""),
        replace(stored("update", "c", "7"), body={"metadata": {"resourceVersion": "7"}}),  # after a change of others
        replace(stored("patch", "e", "9"), stored={"metadata": {"resourceVersion": "9", "finalizers": ["a"]}}),
        replace(stored("patch", "e", "9"), stored={"metadata": {"resourceVersion": "9", "deletionTimestamp": "now"}}),
        replace(stored("update", "d", "8"), body={"metadata": {"resourceVersion": "6"}}),
    )
    run = SimulationRun(end=None, writes=writes)
    assert no_op_writes(run) == {"update secrets": (3, 6)}
    report = SimulationReport(runs=1, writes=(), failures=(), reference=run)
    assert "without faults, 3 of 6 writes were no-ops: update secrets" in str(report)
    assert report_fields(report)["no_op_writes"] == {"update secrets": {"writes": 6, "changed_nothing": 3}}
    assert "3 of 6 writes were no-ops" in report_page(report, title="")
    assert "nothing: " not in str(SimulationReport(runs=1, writes=(), failures=()))


def test_long_path_is_truncated_and_repetitions_are_merged() -> None:
    why = WriteReason(reconcile="", controller="login", number=1)
    turns = [write(number, "secrets" if number % 2 else "services", why) for number in range(5000)]
    same = [write(number, "jobs", why) for number in range(5000)]
    counts: dict[Path, int] = {}
    count_paths(counts, SimulationRun(end=None, writes=(*same, *turns)))
    [(controller, first, second, *others, last)] = counts
    assert (controller, first, second, last) == ("login", "create jobs 5000 times", "create services", "and more")
    assert len(others) == 38


def test_text_contains_most_frequent_paths() -> None:
    told = paths_text({("login", f"create {name}"): count for count, name in enumerate("abcdefghijklmnop", start=1)})
    lines = told.splitlines()
    assert lines[0] == "16  login: create p"
    assert lines[-2:] == [" 5  login: create e", "4 more in the JSON output and the HTML page"]
    assert not paths_text({})


def test_coverage_counts_faults_that_met_their_write() -> None:
    counts: dict[WriteName, dict[FaultKind, int]] = {CREATE: {}}
    schedule = parse_schedule("lost-response:create:configmaps:1,busy:create:secrets:1,order:random:3")
    count_struck(counts, schedule, run(WriteName("create", "secrets")))
    count_struck(counts, schedule, run(WriteName("create", "secrets")))
    assert counts == {CREATE: {FaultKind.LOST_RESPONSE: 2}}


def test_coverage_table_shows_untried_faults() -> None:
    head, row = coverage_text({CREATE: {FaultKind.LOST_RESPONSE: 12}}).splitlines()
    kinds = [kind for kind in FaultKind if kind not in WEBHOOK_FAULTS | ON_REQUEST]
    cells = row.removeprefix("1st create of configmaps").split()
    assert cells == [("12" if kind is FaultKind.LOST_RESPONSE else ".") for kind in kinds]
    assert "crash before" in head
    assert "webhooks" not in head, "where nobody serves any, there is nothing to try"


def test_webhook_faults_have_columns_if_tried() -> None:
    head, row = coverage_text({CREATE: {FaultKind.WEBHOOK_TIMEOUT: 3}}).splitlines()
    assert "webhook-timeout" in head
    assert "webhook-unavailable" not in head
    assert row.split().count("3") == 1
