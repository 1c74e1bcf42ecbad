"""Faults are added where a run has shown something new."""

from __future__ import annotations

import random

from deltaloop.simulation.core.end_states import EndState
from deltaloop.simulation.core.guided_search import GuidedSearch
from deltaloop.simulation.core.oracles import SimulationRun
from deltaloop.simulation.core.schedules import MOST_AT_ONCE, Schedule, ScheduledFault, parse_schedule
from deltaloop.testing.injected_faults.core.program_writes import ProgramWrite, WriteName

CREATE, PATCH, DELETE = (WriteName(verb, "configmaps") for verb in ("create", "patch", "delete"))


def write(name: WriteName, code: int = 200, **spec: str) -> ProgramWrite:
    return ProgramWrite(
        number=1,
        replica="replica-1",
        task="",
        at=0.0,
        verb=name.verb,
        resource=name.resource,
        key="default/a",
        code=code,
        stored={"metadata": {"uid": str(random.random())}, "spec": spec} if code < 300 else {},
        occurrence=name.occurrence,
    )


def run(*writes: ProgramWrite, premature: bool = False) -> SimulationRun:
    return SimulationRun(end=EndState({}), writes=writes, premature=premature)


def drawn(search: GuidedSearch, times: int = 400) -> set[Schedule]:
    return {search.next() for _ in range(times)}


def struck(schedules: set[Schedule]) -> set[WriteName]:
    return {fault.write for schedule in schedules for fault in schedule if isinstance(fault, ScheduledFault)}


def begun() -> GuidedSearch:
    search = GuidedSearch((CREATE, DELETE), random.Random(0).random)
    search.ran((), run(write(CREATE), write(DELETE)))
    return search


def test_schedule_without_new_states_is_not_kept() -> None:
    search = begun()
    states = search.states
    search.ran(parse_schedule("lost-response:create:configmaps:1"), run(write(CREATE), write(DELETE)))
    assert search.states == states
    assert struck(drawn(search)) == {CREATE, DELETE}


def test_write_reached_by_fault_gets_second_fault() -> None:
    search = begun()
    crash = parse_schedule("crash-after:create:configmaps:1")
    search.ran(crash, run(write(CREATE), write(PATCH), write(DELETE)))
    schedules = drawn(search)
    assert struck(schedules) == {CREATE, DELETE, PATCH}
    assert {schedule[0] for schedule in schedules if PATCH in struck({schedule})} == {*crash}


def test_new_object_state_counts_but_new_uid_does_not() -> None:
    search = begun()
    states = search.states
    search.ran((), run(write(CREATE), write(DELETE)))
    assert search.states == states
    search.ran((), run(write(CREATE, size="2"), write(DELETE)))
    assert search.states == states + 1


def test_failed_schedule_gets_no_more_faults() -> None:
    search = begun()
    search.ran(parse_schedule("crash-after:create:configmaps:1"), run(write(CREATE), write(PATCH)), right=False)
    assert struck(drawn(search)) == {CREATE, DELETE}


def test_premature_or_full_schedule_is_not_kept() -> None:
    search = begun()
    search.ran(parse_schedule("premature:create:configmaps:1"), run(write(CREATE), write(PATCH), premature=True))
    most = parse_schedule(",".join(["lost-response:create:configmaps:1"] * MOST_AT_ONCE))
    search.ran(most, run(write(CREATE), write(PATCH), write(PATCH)))
    assert struck(drawn(search)) == {CREATE, DELETE}


def test_writes_before_last_fault_get_no_fault() -> None:
    search = begun()
    search.ran(parse_schedule("crash-after:delete:configmaps:1"), run(write(PATCH), write(DELETE)))
    assert struck(drawn(search)) == {CREATE, DELETE}
