"""How a program ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deltaloop.runtime.core.shutdown import Abandon, Cancel, Drain, End, Phase, Run, Shutdown
from tests.cache.machines import run_machine, show_the_bug, step


def test_a_program_goes_on_until_it_is_stopped() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
    assert shutdown.ask(1e9, running=0) == Run()
    assert not shutdown.stopping


def test_it_drains_then_cancels_then_leaves() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
    shutdown.stop(100.0)
    assert shutdown.ask(100.0, running=1) == Drain(120.0)
    assert shutdown.ask(119.9, running=1) == Drain(120.0)
    assert shutdown.ask(120.0, running=1) == Cancel(130.0)
    assert shutdown.ask(130.0, running=1) == Abandon()
    assert shutdown.ask(130.0, running=1) == End(may_release=False)
    assert shutdown.ask(131.0, running=0) == End(may_release=True)


def test_it_ends_as_soon_as_nothing_runs() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
    shutdown.stop(100.0)
    assert shutdown.ask(100.0, running=0) == End(may_release=True)


def test_a_second_stop_ends_it_at_once() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
    shutdown.stop(100.0)
    shutdown.stop(101.0)
    assert shutdown.ask(101.0, running=1) == Abandon()


def test_draining_is_part_of_the_whole() -> None:
    shutdown = Shutdown(drain_timeout=60.0, timeout=5.0)
    shutdown.stop(0.0)
    assert shutdown.ask(5.0, running=1) == Abandon()


class ShutdownMachine(RuleBasedStateMachine):
    shutdown_class: Any = Shutdown

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.running = 0
        self.stops: list[float] = []
        self.cancelled = False
        self.shutdown: Shutdown = self.shutdown_class(drain_timeout=5.0, timeout=8.0)
        self.last: object = Run()

    @rule()
    def a_reconcile_begins(self) -> None:
        if isinstance(self.last, Run):
            self.running += 1

    @rule()
    def a_reconcile_ends(self) -> None:
        self.running = max(0, self.running - 1)

    @rule(by=st.sampled_from([0.5, 2.5, 3.0, 8.0]))
    def time_passes(self, by: float) -> None:
        self.now += by

    @rule()
    def stop(self) -> None:
        self.stops.append(self.now)
        self.shutdown.stop(self.now)

    @rule()
    def ask(self) -> None:
        self.last = effect = self.shutdown.ask(self.now, running=self.running)
        if not self.stops:
            assert effect == Run()
            return
        assert not isinstance(effect, Run)
        age = self.now - self.stops[0]
        if isinstance(effect, Drain):
            assert age < 5.0
            assert self.running
            assert len(self.stops) == 1
        if isinstance(effect, Cancel):
            assert 5.0 <= age < 8.0
            assert self.running
        if isinstance(effect, Abandon):
            assert age >= 8.0 or len(self.stops) > 1
        if isinstance(effect, End):
            assert effect.may_release or self.running

    @invariant()
    def the_lock_is_never_given_up_while_something_runs(self) -> None:
        if isinstance(self.last, End) and self.running:
            assert not self.last.may_release
        assert self.shutdown.stopping is bool(self.stops)


def machine_of(shutdown_class: Any) -> type[RuleBasedStateMachine]:
    check = vars(ShutdownMachine)["the_lock_is_never_given_up_while_something_runs"]
    return type("Machine", (ShutdownMachine,), {"shutdown_class": shutdown_class, check.__name__: check})


def test_ends_against_a_model() -> None:
    run_machine(machine_of(Shutdown))


def _releases_anyway(self: Any, now: float, *, running: int) -> Any:
    """Gives the lock up although a reconcile was left behind."""
    effect = Shutdown.ask(self, now, running=running)
    return End(may_release=True) if isinstance(effect, End) else effect


ReleasesAnyway = type("ReleasesAnyway", (Shutdown,), {"ask": _releases_anyway})


def _drains_for_ever(self: Any, now: float, *, running: int) -> Any:
    """Never cancels."""
    return (
        Drain(self._began_at + 5.0)
        if self.phase is Phase.DRAINING and running
        else Shutdown.ask(self, now, running=running)
    )


DrainsForEver = type("DrainsForEver", (Shutdown,), {"ask": _drains_for_ever})


@pytest.mark.parametrize(
    ("mutant", "history"),
    [
        (ReleasesAnyway, [step("a_reconcile_begins"), step("stop"), step("stop"), step("ask"), step("ask")]),
        (DrainsForEver, [step("a_reconcile_begins"), step("stop"), step("time_passes", by=8.0), step("ask")]),
    ],
)
def test_the_machine_sees_seeded_bugs(mutant: Any, history: list[Any]) -> None:
    show_the_bug(machine_of(Shutdown), machine_of(mutant), history)
