"""Faults in the terms of the story."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.simulation.core.schedules import (
    ALL_KINDS,
    KNOWN_KINDS,
    ON_REQUEST,
    ORDERS,
    REVISIONS,
    OrderKind,
    Pasts,
    Schedule,
    ScheduledFault,
    ScheduledOrder,
    combined,
    combining,
    later_crashes,
    names_of,
    parse_kinds,
    parse_replay,
    parse_schedule,
    replay_text,
    schedule_text,
    shorter,
    systematic,
)
from deltaloop.testing.injected_faults.core.program_writes import WRITE_VERBS, FaultKind, ProgramWrite, WriteName
from tests.having import having

RESOURCES = st.sampled_from(["secrets", "statefulsets.apps", "brokers.example.com"])
NAMES = st.builds(
    WriteName,
    st.sampled_from([*WRITE_VERBS, "apply"]),
    RESOURCES,
    st.sampled_from(["", "status", "scale"]),
    st.integers(1, 99),
)
PLAIN = st.sampled_from([kind for kind in FaultKind if kind not in (FaultKind.STALE, FaultKind.CRASH_LATER)])
FAULTS = (
    st.builds(ScheduledFault, PLAIN, NAMES)
    | st.builds(ScheduledFault, st.just(FaultKind.STALE), NAMES, behind=st.integers(1, 99))
    | st.builds(ScheduledFault, st.just(FaultKind.CRASH_LATER), NAMES, changes=st.integers(1, 99))
)
ORDERED = st.builds(ScheduledOrder, st.sampled_from(OrderKind), st.integers(0, 99))
SCHEDULES = st.lists(FAULTS | ORDERED, max_size=4).map(tuple)


@given(SCHEDULES)
def test_schedule_round_trips(schedule: Schedule) -> None:
    assert parse_schedule(schedule_text(schedule)) == schedule


@given(SCHEDULES, st.integers())
def test_replay_round_trips_with_seed(schedule: Schedule, seed: int) -> None:
    assert parse_replay(replay_text(schedule, seed=seed)) == (seed or None, schedule)


@pytest.mark.parametrize(
    "text", ["seed:", "seed:three,lost-response:create:secrets:1", "seed:3:4", "seed:--1", "lost:a:b:1,seed:3"]
)
def test_invalid_replay_is_rejected(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_replay(text)
    assert caught.value.argument in ("seed", "schedule")


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("crash-after:create:secrets", "fault"),
        ("explode:create:secrets:1", "kind of a fault"),
        ("lost-response:get:secrets:1", "verb of a fault"),
        ("lost-response:create:secrets:0", "occurrence of a write"),
        ("lost-response:create:secrets:-1", "occurrence of a write"),
        ("lost-response:create:secrets:²", "occurrence of a write"),
        ("lost-response:create:secrets:1:2", "fault"),
        ("stale:create:secrets:1", "fault"),
        ("stale:create:secrets:1:0", "number of revisions"),
        ("crash-later:create:secrets:1", "fault"),
        ("crash-later:create:secrets:1:0", "number of changes"),
        ("order:alphabetical:1", "order"),
        ("order:random", "order"),
        ("order:random:-1", "order"),
        ("order:random:1:1", "order"),
        ("seed:3,lost-response:create:secrets:1", "schedule"),
    ],
)
def test_invalid_schedule_is_rejected(text: str, argument: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument=argument)):
        parse_schedule(text)


@pytest.mark.parametrize(
    ("occurrence", "text"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (112, "112th"),
    ],
)
def test_write_name_is_ordinal_text(occurrence: int, text: str) -> None:
    name = WriteName("patch", "brokers.example.com", "status", occurrence)
    assert str(name) == f"{text} patch of brokers.example.com/status"
    assert ScheduledFault(FaultKind.LOST_RESPONSE, name).story == f"the response to the {name} is lost"


def test_systematic_search_covers_each_fault_and_write_once() -> None:
    names = [WriteName("create", "secrets"), WriteName("create", "secrets", occurrence=2), WriteName("delete", "pods")]
    schedules = [*systematic(names)]
    assert len(schedules) == len({*schedules})
    assert all(len(schedule) == 1 for schedule in schedules)
    faults = [fault for (fault,) in schedules if isinstance(fault, ScheduledFault)]
    orders = [order for (order,) in schedules if isinstance(order, ScheduledOrder)]
    others = len(FaultKind) - len({FaultKind.STALE, FaultKind.CRASH_LATER, *ON_REQUEST})
    assert len(faults) == len(names) * (others + REVISIONS[-1])
    assert {fault.write for fault in faults} == {*names}
    assert [order.kind for order in orders] == [OrderKind.RANDOM] * ORDERS + [OrderKind.PRIORITIES] * ORDERS


@given(st.sets(st.integers(1, 40)))
def test_stale_restarts_cover_each_state_once(changes: set[int]) -> None:
    """However far behind each change lies: what lies between two of them looks the same."""
    name, pasts = WriteName("create", "secrets"), Pasts()
    tried: list[int] = []
    for (fault,) in systematic([name], (FaultKind.STALE,), pasts):
        assert isinstance(fault, ScheduledFault)
        tried.append(fault.behind)
        pasts.ran((fault,), [tuple(sorted(changes))])
    states = [max((change for change in changes if change <= behind), default=0) for behind in tried]
    assert tried[0] == 1  # nothing is known before
    assert len({*states}) == len(states)
    assert {*states} | {0} == {change for change in changes if change <= REVISIONS[-1]} | {0}


def test_crashes_between_writes_cover_different_states() -> None:
    """After the last change before a write a crash finds what a crash before that write does."""
    names = [WriteName("create", "secrets", occurrence=number) for number in (1, 2, 3)]
    later = later_crashes(names, (0, 0, 1, 2, 2, 2, 3, 3))
    texts = ["2:1", "2:2", "3:1", "3:2"]
    assert [str(fault) for fault in later] == [f"crash-later:create:secrets:{text}" for text in texts]
    assert [*systematic(names, (FaultKind.CRASH_LATER,), later=later)] == [(fault,) for fault in later]
    assert ScheduledFault.parse(str(later[0])) == later[0]
    assert later[1].story == "the program crashes at change number 2 of other clients after the 2nd create of secrets"


def test_runs_with_several_faults_do_not_reduce_single_faults() -> None:
    name, pasts = WriteName("create", "secrets"), Pasts()
    stale = ScheduledFault(FaultKind.STALE, name, 1)
    pasts.ran((stale, ScheduledFault(FaultKind.LOST_RESPONSE, name)), [(1,)])
    pasts.ran((ScheduledFault(FaultKind.LOST_RESPONSE, name),), [])
    assert len([*systematic([name], (FaultKind.STALE,), pasts)]) == REVISIONS[-1]


def test_repeated_write_has_one_name() -> None:
    first = ProgramWrite(number=1, replica="a", task="", at=0.0, verb="create", resource="secrets", key="default/a")
    again = ProgramWrite(number=2, replica="a", task="", at=1.0, verb="create", resource="secrets", key="default/a")
    assert names_of([first, again]) == (WriteName("create", "secrets"),)


@given(st.integers(2, 9), st.integers())
def test_combined_faults_affect_different_writes_in_order(writes: int, seed: int) -> None:
    names = [WriteName("create", "secrets", occurrence=number) for number in range(1, writes + 1)]
    schedule = combined(names, random.Random(seed).random)
    occurrences = [fault.write.occurrence for fault in schedule if isinstance(fault, ScheduledFault)]
    assert 2 <= len(occurrences) <= min(3, writes)
    assert len(schedule) <= len(occurrences) + 1
    assert occurrences == sorted({*occurrences})


@given(SCHEDULES)
def test_shorter_schedules_omit_one_fault_each(schedule: Schedule) -> None:
    found = [*shorter(schedule)]
    assert len(found) == (len(schedule) if len(schedule) > 1 else 0)
    assert all(len(each) == len(schedule) - 1 for each in found)


def test_only_selected_kinds_of_faults_are_used() -> None:
    names = (WriteName("create", "secrets"), WriteName("delete", "secrets"))
    kinds = parse_kinds("lost-response, order")
    assert kinds == (FaultKind.LOST_RESPONSE, *OrderKind)
    assert parse_kinds(",".join([*(kind.value for kind in FaultKind), "order"])) == KNOWN_KINDS
    assert parse_kinds(",".join([*(kind.value for kind in FaultKind if kind not in ON_REQUEST), "order"])) == ALL_KINDS
    singles = [schedule_text(schedule) for schedule in systematic(names, kinds)]
    assert singles[:3] == ["lost-response:create:secrets:1", "lost-response:delete:secrets:1", "order:random:1"]
    assert len(singles) == 2 + 2 * ORDERS
    draw = random.Random(0).random
    drawn = [fault for _ in range(50) for fault in combined(names, draw, kinds)]
    assert {fault.kind for fault in drawn} == {*kinds}
    assert not combining((FaultKind.PREMATURE, *OrderKind))


@pytest.mark.parametrize("text", ["", " , ", "crash", "lost-response,order:random"])
def test_unknown_kind_is_rejected(text: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="kinds of faults")):
        parse_kinds(text)


def test_each_kind_of_fault_has_story_name_and_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "simulate-failures.md").read_text(encoding="utf-8")
    name = WriteName("create", "secrets", "", 2)
    numbers = {FaultKind.STALE: (5, 0), FaultKind.CRASH_LATER: (0, 5)}
    told = [ScheduledFault(kind, name, *numbers.get(kind, (0, 0))) for kind in FaultKind]
    assert len({fault.story for fault in told}) == len(FaultKind)
    assert all("2nd create of secrets" in fault.story for fault in told)
    assert [parse_schedule(str(fault)) for fault in told] == [(fault,) for fault in told]
    assert not [kind for kind in FaultKind if f"| `{kind}" not in page and f", `{kind}`" not in page]
