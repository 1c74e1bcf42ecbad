"""What tells that a run is wrong."""

from __future__ import annotations

from dataclasses import replace

from deltaloop.simulation.core.claims import EarlyClaim
from deltaloop.simulation.core.end_states import EndState
from deltaloop.simulation.core.oracles import Oracle, SimulationRun, problems_of
from deltaloop.testing.injected_faults.core.program_writes import ProgramWrite

NOTHING = EndState({})


def write(verb: str, uid: str = "u1", *, code: int = 200, subresource: str = "") -> ProgramWrite:
    stored = {"metadata": {"namespace": "default", "name": "a", "uid": uid}} if code < 300 else {}
    return ProgramWrite(
        number=1,
        replica="replica-1",
        task="",
        at=0.0,
        verb=verb,
        resource="secrets",
        key="default/a",
        subresource=subresource,
        code=code,
        stored=stored,
    )


def outcome(
    *writes: ProgramWrite,
    raised: str = "",
    unsettled: str = "",
    end: EndState | None = NOTHING,
    rests: tuple[int, ...] = (),
    premature: bool = False,
    violation: str = "",
) -> SimulationRun:
    return SimulationRun(
        end=end,
        writes=writes,
        raised=raised,
        unsettled=unsettled,
        rests=rests,
        premature=premature,
        violation=violation,
    )


def told(reference: SimulationRun, found: SimulationRun) -> list[Oracle]:
    return [problem.oracle for problem in problems_of(reference, found)]


def test_run_equal_to_reference_has_no_problems() -> None:
    assert not told(outcome(write("create")), outcome(write("create", "u2")))


def test_object_recreated_with_new_uid_is_problem() -> None:
    twice = outcome(write("create"), write("create", "u2"))
    assert told(outcome(write("create")), twice) == [Oracle.RECREATED]
    assert told(outcome(write("apply")), outcome(write("apply"), write("apply", "u2"))) == [Oracle.RECREATED]
    assert not told(twice, twice), "the run without faults does so, too"


def test_rejected_or_repeated_create_is_no_problem() -> None:
    assert not told(outcome(write("create")), outcome(write("create"), write("create", "", code=409)))
    assert not told(outcome(write("apply")), outcome(write("apply"), write("apply")))


def test_delete_of_kept_object_is_problem() -> None:
    assert told(outcome(write("create")), outcome(write("create"), write("delete"))) == [Oracle.RECREATED]
    assert not told(outcome(write("create")), outcome(write("create"), write("delete", code=409)))


def test_repeated_creation_of_deleted_object_is_no_problem() -> None:
    goes = outcome(write("create"), write("delete"))
    assert not told(goes, goes)
    assert not told(goes, outcome(write("create"), write("delete"), write("create", "u2"), write("delete", "u2")))


def test_phases_between_settled_states_are_compared_separately() -> None:
    first = (write("create"), write("delete"))
    reference = outcome(*first, write("create", "u2"), rests=(1, 2))
    assert not told(reference, outcome(*first, write("create", "u3"), rests=(1, 2)))
    again = outcome(*first, write("create", "u3"), write("delete", "u3"), write("create", "u4"), rests=(1, 2))
    assert told(reference, again) == [Oracle.RECREATED]
    gone = outcome(write("create"), write("delete"), rests=(1,))
    assert told(outcome(write("create"), rests=(1,)), gone) == [Oracle.RECREATED], "it is carried over"


def test_premature_run_is_compared_as_whole() -> None:
    first, again = (write("create"),), (write("delete"), write("create", "u2"))
    reference = outcome(*first, *again, rests=(1, 3))
    assert not told(reference, outcome(*first, *again, rests=(3, 3), premature=True))
    assert told(reference, outcome(*first, *again, rests=(3, 3))) == [Oracle.RECREATED]
    thrice = (write("delete", "u2"), write("create", "u3"))
    assert told(reference, outcome(*first, *again, *thrice, rests=(0, 5), premature=True)) == [Oracle.RECREATED]


def test_violated_invariant_is_problem() -> None:
    assert told(outcome(), outcome(violation="AssertionError: no", end=None)) == [Oracle.INVARIANT]


def test_scenario_error_and_unsettled_run_are_problems() -> None:
    assert told(outcome(), outcome(raised="AssertionError: no", end=None)) == [Oracle.SCENARIO]
    assert told(outcome(), outcome(unsettled="replica-1: broker has 1 key in line")) == [Oracle.SETTLES]


def test_final_states_are_compared() -> None:
    here, gone = EndState({("v1/Secret", "default/a"): {"data": {}}}), NOTHING
    (problem,) = problems_of(outcome(end=here), outcome(end=gone))
    assert (problem.oracle, str(problem)) == (Oracle.END_STATE, "v1/Secret default/a is missing")
    assert not problems_of(outcome(end=here), outcome(end=gone), ignored=frozenset({("v1/Secret", "default/a")}))


def test_write_after_lost_lease_is_problem() -> None:
    late = replace(write("update"), lost_lease="default/leader")
    assert told(outcome(write("update")), outcome(late)) == [Oracle.LEADERSHIP]
    assert told(outcome(write("update")), outcome(late, late)) == [Oracle.LEADERSHIP], "once for each object"
    assert not told(outcome(late), outcome(late)), "so it is without faults, too"
    assert not told(outcome(write("update")), outcome(replace(late, code=409)))


def test_early_ready_claim_is_problem_unless_in_reference() -> None:
    claim = EarlyClaim("v1/A", "default/a", "v1/Pod", "default/p", "InProgress", "it waits")
    early = SimulationRun(end=NOTHING, writes=(), claims=(claim, claim))
    assert told(outcome(), early) == [Oracle.READY]
    usual = SimulationRun(end=NOTHING, writes=(), claims=(EarlyClaim("v1/A", "o", "v1/Pod", "p", "Failed", "no"),))
    assert not told(usual, early)


def test_kinds_seen_in_one_run_only_are_compared_if_written() -> None:
    config, secret = ("v1/ConfigMap", "default/a"), ("v1/Secret", "default/a")
    reference = SimulationRun(end=EndState({secret: {}}), writes=(), kinds=("v1/Secret",))
    root = ("v1/ConfigMap", "default/kube-root-ca.crt")
    objects: dict[tuple[str, str], dict[str, object]] = {secret: {}, config: {}, root: {}}
    found = SimulationRun(end=EndState(objects), writes=(), kinds=("v1/ConfigMap", "v1/Secret"))
    assert not told(reference, found)
    made = SimulationRun(end=EndState(objects), writes=(write("create"),), kinds=("v1/ConfigMap", "v1/Secret"))
    assert [str(problem) for problem in problems_of(reference, made)] == [
        "v1/ConfigMap default/a exists, but must not exist"
    ]
