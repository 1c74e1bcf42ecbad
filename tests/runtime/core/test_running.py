"""Which reconciles run, have to stop, and do not; and how a program ends."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deltaloop.runtime.core.running import Running, Runs, StopReason
from tests.cache.machines import run_machine, show_the_bug, step

KEYS = ("a", "b", "c")
Due: TypeAlias = tuple[list[Running], list[Running]]


def test_reconcile_without_timeout_is_never_due() -> None:
    runs = Runs(Running, slots=1, timeout=None)
    run = runs.begin("a", 5.0)
    assert runs.due(1e9) == ([], [])
    assert runs.next_at() is None
    runs.ended(run)
    assert len(runs) == 0


def test_reconcile_over_timeout_is_canceled_once_and_reported_repeatedly() -> None:
    runs = Runs(Running, slots=1, timeout=30.0)
    run = runs.begin("a", 5.0)
    assert (runs.due(5.0), runs.next_at()) == (([], []), 35.0)
    assert runs.lingering() == ()
    assert (runs.due(35.0), run.reason) == (([run], []), StopReason.TIMEOUT)
    assert (runs.due(35.0), runs.next_at()) == (([], []), 45.0)
    assert runs.due(45.0) == ([], [run])
    assert (runs.due(46.0), runs.next_at()) == (([], []), 55.0)
    assert runs.lingering() == (run,)
    with pytest.raises(RuntimeError, match="'a'"):
        runs.begin("a", 50.0)
    runs.ended(run)
    assert runs.begin("a", 50.0).number == 2


def test_worker_is_free_only_after_reconcile_ended() -> None:
    runs = Runs(Running, slots=1, timeout=1.0)
    run = runs.begin("a", 0.0)
    assert runs.due(1.0) == ([run], [])
    with pytest.raises(RuntimeError):
        runs.begin("b", 2.0)


def test_interruption_after_timeout_replaces_reason() -> None:
    runs = Runs(Running, slots=1, timeout=1.0)
    run = runs.begin("a", 0.0)
    runs.due(1.0)
    runs.interrupt()
    assert run.reason is StopReason.INTERRUPTED
    assert (runs.due(1.0), runs.next_at()) == (([], []), 11.0)  # it was told to stop once, that is enough


def test_interrupted_reconcile_never_times_out() -> None:
    runs = Runs(Running, slots=1, timeout=1.0)
    run = runs.begin("a", 0.0)
    runs.interrupt()
    assert (runs.due(5.0), run.reason) == (([run], []), StopReason.INTERRUPTED)


def test_abandoned_reconciles_keep_their_keys() -> None:
    runs = Runs(Running, slots=2, timeout=None)
    run = runs.begin("a", 0.0)
    assert runs.abandon() == (run,)
    assert runs.abandon() == ()
    assert (runs.due(0.0), runs.next_at()) == (([], []), None)
    assert run.reason is StopReason.INTERRUPTED  # its writes are refused
    with pytest.raises(RuntimeError):
        runs.begin("a", 1.0)
    runs.ended(run)
    with pytest.raises(RuntimeError, match="'a'"):
        runs.ended(run)


class RunsMachine(RuleBasedStateMachine):
    runs_class: Any = Runs

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.runs: Runs[Running] = self.runs_class(Running, slots=2, timeout=10.0)
        self.present: dict[str, Any] = {}
        self.started: dict[str, float] = {}
        self.told: dict[str, int] = {}
        self.interrupted: set[str] = set()

    @rule(key=st.sampled_from(KEYS))
    def begin(self, key: str) -> None:
        if key in self.present or len(self.present) >= 2:
            with pytest.raises(RuntimeError):
                self.runs.begin(key, self.now)
            return
        self.present[key] = self.runs.begin(key, self.now)
        self.started[key], self.told[key] = self.now, 0

    @rule(by=st.sampled_from([0.0, 1.0, 5.0, 10.0]))
    def time_passes(self, by: float) -> None:
        self.now += by

    @rule()
    def ask(self) -> None:
        stop, warn = self.runs.due(self.now)
        for run in stop:
            self.told[run.key] += 1
            wanted = StopReason.INTERRUPTED if run.key in self.interrupted else StopReason.TIMEOUT
            assert run.reason is wanted
        told = {run.key for run in (*stop, *warn)}
        for key in self.present:
            due = key in self.interrupted or self.now >= self.started[key] + 10.0
            assert due or key not in told
            assert self.told[key] or not due
        until = self.runs.next_at()
        assert (until is not None) == bool(self.present)
        assert until is None or until > self.now

    @rule()
    def interrupt(self) -> None:
        self.runs.interrupt()
        self.interrupted |= {*self.present}

    @rule(key=st.sampled_from(KEYS))
    def end(self, key: str) -> None:
        if key in self.present:
            run = self.present.pop(key)
            wanted = StopReason.INTERRUPTED if key in self.interrupted else run.reason
            assert run.reason is wanted
            self.runs.ended(run)
            self.interrupted.discard(key)

    @invariant()
    def slots_and_keys_are_taken_by_what_has_not_ended(self) -> None:
        assert {run.key for run in self.runs.present()} == set(self.present)
        assert len(self.runs) <= 2
        assert all(times <= 1 for times in self.told.values())


def machine_of(runs_class: Any) -> type[RuleBasedStateMachine]:
    check = vars(RunsMachine)["slots_and_keys_are_taken_by_what_has_not_ended"]
    return type("Machine", (RunsMachine,), {"runs_class": runs_class, check.__name__: check})


def test_running_reconciles_match_model() -> None:
    run_machine(machine_of(Runs))


def _frees_at_timeout(self: Runs[Running], now: float) -> Due:
    """Gives the slot back when a run was told to stop, not when it has ended."""
    stop, warn = Runs[Running].due(self, now)
    for run in stop:
        self._runs.pop(run.key)
    return stop, warn


FreesAtTimeout = type("FreesAtTimeout", (Runs,), {"due": _frees_at_timeout})


def _tells_again(self: Runs[Running], now: float) -> Due:
    """Cancels what was cancelled before, again and again."""
    for run in self._runs.values():
        run.warn_at = None
    return Runs[Running].due(self, now)


TellsAgain = type("TellsAgain", (Runs,), {"due": _tells_again})


def _timeout_wins(self: Runs[Running], now: float) -> Due:
    """Counts an interrupted run as timed out."""
    for run in self._runs.values():
        if run.deadline is not None and now >= run.deadline:
            run.reason = StopReason.TIMEOUT
    return Runs[Running].due(self, now)


TimeoutWins = type("TimeoutWins", (Runs,), {"due": _timeout_wins})


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mutant", "history"),
    [
        (FreesAtTimeout, [step("begin", key="a"), step("time_passes", by=10.0), step("ask")]),
        (TellsAgain, [step("begin", key="a"), step("time_passes", by=10.0), step("ask"), step("ask")]),
        (
            TimeoutWins,
            [step("begin", key="a"), step("interrupt"), step("time_passes", by=10.0), step("ask")],
        ),
    ],
)
def test_machine_detects_seeded_bugs(mutant: Any, history: list[Any]) -> None:
    show_the_bug(machine_of(Runs), machine_of(mutant), history)
