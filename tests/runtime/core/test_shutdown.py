"""How a program ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deltaloop.runtime.core.shutdown import Abandon, Cancel, Continue, Drain, End, Heard, Linger, Shutdown
from tests.cache.machines import run_machine, show_the_bug, step


def test_shutdown_does_nothing_before_stop() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
    assert shutdown.ask(1e9, running=0) == Continue()
    assert not shutdown.stopping


def test_shutdown_drains_then_cancels_then_abandons() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
    shutdown.stop(100.0)
    assert shutdown.ask(100.0, running=1) == Drain(120.0)
    assert shutdown.ask(119.9, running=1) == Drain(120.0)
    assert shutdown.ask(120.0, running=1) == Cancel(130.0)
    assert shutdown.ask(130.0, running=1) == Abandon()
    assert shutdown.ask(130.0, running=1) == End()
    assert shutdown.ask(131.0, running=0) == End()


def test_shutdown_ends_without_running_reconciles() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
    shutdown.stop(100.0)
    assert shutdown.ask(100.0, running=0) == End()
    assert shutdown.ask(100.0, running=1) == End(), "it stays at its end"


def test_second_stop_abandons_reconciles_at_once() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
    shutdown.stop(100.0)
    shutdown.stop(101.0)
    assert shutdown.ask(101.0, running=1) == Abandon()


def test_drain_timeout_is_limited_by_total_timeout() -> None:
    shutdown = Shutdown(drain_timeout=60.0, timeout=5.0)
    shutdown.stop(0.0)
    assert shutdown.ask(5.0, running=1) == Abandon()


@pytest.mark.parametrize(
    ("first", "second", "after", "heard"),
    [
        ("SIGTERM", "SIGTERM", 0.0, "repeated"),  # as `timeout` does
        ("SIGTERM", "SIGTERM", 0.49, "repeated"),
        ("SIGTERM", "SIGTERM", 0.5, "at once"),
        ("SIGTERM", "SIGINT", 0.0, "at once"),
        ("", "", 0.0, "at once"),  # two calls of stop()
    ],
)
def test_duplicate_signals_within_window_count_once(first: str, second: str, after: float, heard: Heard) -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0)
    assert shutdown.stop(100.0, source=first) == "begins"
    assert shutdown.stop(100.0 + after, source=second) == heard
    expected = Drain(120.0) if heard == "repeated" else Abandon()
    assert shutdown.ask(100.0 + after, running=1) == expected


def test_duplicate_signal_window_is_fixed_and_configurable() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0, duplicate_signal_window=2.0)
    heard = [shutdown.stop(at, source="SIGINT") for at in (0.0, 1.0, 1.9, 2.1, 2.2)]
    assert heard == ["begins", "repeated", "repeated", "at once", "too late"]
    each = Shutdown(drain_timeout=20.0, timeout=30.0, duplicate_signal_window=0.0)
    assert [each.stop(0.0, source="SIGINT") for _ in range(2)] == ["begins", "at once"]


def test_program_lingers_during_grace_period() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0, grace=5.0)
    shutdown.stop(100.0)
    assert shutdown.ask(100.0, running=1) == Drain(120.0)
    assert shutdown.ask(101.0, running=0) == Linger(105.0)
    assert shutdown.ask(104.9, running=0) == Linger(105.0)
    assert shutdown.ask(105.0, running=0) == End()


def test_grace_period_runs_while_reconciles_drain() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0, grace=5.0)
    shutdown.stop(100.0)
    assert shutdown.ask(106.0, running=1) == Drain(120.0)
    assert shutdown.ask(107.0, running=0) == End()


def test_second_stop_ends_grace_period() -> None:
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0, grace=5.0)
    assert shutdown.stop(100.0, source="SIGTERM") == "begins"
    assert shutdown.ask(100.0, running=0) == Linger(105.0)
    assert shutdown.stop(100.1, source="SIGTERM") == "repeated"
    assert shutdown.ask(100.1, running=0) == Linger(105.0)
    assert shutdown.stop(101.0, source="SIGTERM") == "at once"
    assert shutdown.ask(101.0, running=0) == End()


def test_grace_period_is_limited_by_total_timeout_and_ends_with_abandoning() -> None:
    shutdown = Shutdown(drain_timeout=1.0, timeout=2.0, grace=5.0)
    shutdown.stop(0.0)
    assert shutdown.ask(0.0, running=0) == Linger(2.0)
    shutdown = Shutdown(drain_timeout=20.0, timeout=30.0, grace=5.0)
    shutdown.stop(0.0)
    shutdown.stop(1.0)
    assert shutdown.ask(1.0, running=1) == Abandon()
    assert shutdown.ask(1.0, running=0) == End()


class ShutdownMachine(RuleBasedStateMachine):
    shutdown_class: Any = Shutdown

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.running = 0
        self.stops: list[float] = []
        self.source = ""
        self.keeps_lock = False
        self.shutdown: Shutdown = self.shutdown_class(drain_timeout=5.0, timeout=8.0)
        self.last: object = Continue()

    @rule()
    def a_reconcile_begins(self) -> None:
        if isinstance(self.last, Continue):
            self.running += 1

    @rule()
    def a_reconcile_ends(self) -> None:
        self.running = max(0, self.running - 1)

    @rule(by=st.sampled_from([0.4, 0.5, 2.5, 3.0, 8.0]))
    def time_passes(self, by: float) -> None:
        self.now += by

    @rule(source=st.sampled_from(["", "SIGINT", "SIGTERM"]))
    def stop(self, source: str) -> None:
        again = bool(self.stops and source and source == self.source and self.now - self.stops[0] < 0.5)
        if not self.stops:
            self.source = source
        heard = self.shutdown.stop(self.now, source=source)
        assert (heard == "repeated") is again
        if not again:
            self.stops.append(self.now)

    @rule()
    def ask(self) -> None:
        self.last = effect = self.shutdown.ask(self.now, running=self.running)
        if not self.stops:
            assert effect == Continue()
            return
        assert not isinstance(effect, Continue)
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
            assert self.running
            self.keeps_lock = True

    @invariant()
    def the_lock_is_never_given_up_while_something_runs(self) -> None:
        if isinstance(self.last, End) and self.running:
            assert self.keeps_lock
        assert self.shutdown.stopping is bool(self.stops)


def machine_of(shutdown_class: Any) -> type[RuleBasedStateMachine]:
    check = vars(ShutdownMachine)["the_lock_is_never_given_up_while_something_runs"]
    return type("Machine", (ShutdownMachine,), {"shutdown_class": shutdown_class, check.__name__: check})


def test_shutdown_matches_model() -> None:
    run_machine(machine_of(Shutdown))


def _releases_anyway(self: Any, now: float, *, running: int) -> Any:
    """Leaves a reconcile behind without a word, so that the lock is given up although it runs."""
    effect = Shutdown.ask(self, now, running=running)
    return End() if isinstance(effect, Abandon) else effect


ReleasesAnyway = type("ReleasesAnyway", (Shutdown,), {"ask": _releases_anyway})


def _drains_for_ever(self: Any, now: float, *, running: int) -> Any:
    """Never cancels."""
    return (
        Drain(self._began_at + 5.0)
        if self.phase == "draining" and running
        else Shutdown.ask(self, now, running=running)
    )


DrainsForEver = type("DrainsForEver", (Shutdown,), {"ask": _drains_for_ever})


def _counts_each_signal(self: Any, now: float, *, source: str = "") -> Any:
    """Takes what comes twice for two requests."""
    return Shutdown.stop(self, now)


CountsEachSignal = type("CountsEachSignal", (Shutdown,), {"stop": _counts_each_signal})


def _moves_the_window(self: Any, now: float, *, source: str = "") -> Any:
    """Never hears whoever goes on asking."""
    heard = Shutdown.stop(self, now, source=source)
    self._began_at = now if heard == "repeated" else self._began_at
    return heard


MovesTheWindow = type("MovesTheWindow", (Shutdown,), {"stop": _moves_the_window})
_AGAIN = [step("stop", source="SIGTERM"), step("time_passes", by=0.4)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mutant", "history"),
    [
        (
            ReleasesAnyway,
            [step("a_reconcile_begins"), step("stop", source=""), step("stop", source=""), step("ask"), step("ask")],
        ),
        (
            DrainsForEver,
            [step("a_reconcile_begins"), step("stop", source=""), step("time_passes", by=8.0), step("ask")],
        ),
        (CountsEachSignal, [step("a_reconcile_begins"), *_AGAIN, *_AGAIN]),
        (MovesTheWindow, [step("a_reconcile_begins"), *_AGAIN, *_AGAIN, *_AGAIN]),
    ],
)
def test_machine_detects_seeded_bugs(mutant: Any, history: list[Any]) -> None:
    show_the_bug(machine_of(Shutdown), machine_of(mutant), history)
