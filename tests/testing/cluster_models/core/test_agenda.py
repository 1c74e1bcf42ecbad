"""When steps are due."""

from __future__ import annotations

import pytest

from deltaloop.api import kinds
from deltaloop.testing.cluster_models.core.cluster_view import (
    Agenda,
    EnvironmentStep,
    EnvironmentVerb,
    EnvironmentWrite,
)

WRITE = EnvironmentWrite(verb=EnvironmentVerb.DELETE, kind=kinds.POD, namespace="default", name="a")


def step(told: str = "it happens", *, write: EnvironmentWrite | None = WRITE) -> EnvironmentStep:
    return EnvironmentStep(about="uid", told=told, takes=(1.0, 3.0), write=write)


def test_step_is_due_after_its_random_delay() -> None:
    agenda = Agenda(lambda _: 0.5)
    assert agenda.plan([step()], now=10.0) == ()
    assert agenda.next_at == 12.0
    assert agenda.left(now=10.0) == ("the environment: it happens, in 2 s",)
    assert agenda.plan([step()], now=11.9) == ()
    assert agenda.plan([step()], now=12.0) == (step(),)
    agenda.done(step())
    assert agenda.next_at is None


def test_step_that_is_not_planned_again_is_dropped() -> None:
    agenda = Agenda(lambda _: 0.0)
    agenda.plan([step()], now=0.0)
    assert agenda.plan([], now=0.5) == ()
    assert agenda.next_at is None
    agenda.plan([step()], now=5.0)
    assert agenda.next_at == 6.0


def test_repeated_step_has_new_delay() -> None:
    asked: list[str] = []

    def draw(what: str) -> float:
        asked.append(what)
        return 0.0

    agenda = Agenda(draw)
    for now in (0.0, 1.0, 2.0):
        for due in agenda.plan([step()], now=now):
            agenda.done(due)
    assert asked == ["it happens, 1", "it happens, 2"]


def test_longest_due_step_comes_first() -> None:
    agenda = Agenda(lambda what: 1.0 if what.startswith("late") else 0.0)
    agenda.plan([step("late"), step("early")], now=0.0)
    assert [each.told for each in agenda.plan([step("late"), step("early")], now=9.0)] == ["early", "late"]


def test_failed_step_is_retried_with_backoff() -> None:
    agenda = Agenda(lambda _: 0.0)
    agenda.plan([step()], now=0.0)
    now, pauses = 1.0, list[float]()
    for _ in range(8):
        assert agenda.plan([step()], now=now) == (step(),)
        agenda.failed(step(), "InvalidError: no", now=now)
        assert agenda.next_at is not None
        pauses.append(agenda.next_at - now)
        now = agenda.next_at
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert agenda.left(now=now) == ("the environment: it happens, tried 8 times: InvalidError: no, in 0 s",)
    agenda.failed(step("another"), "", now=now)  # which nobody says: nothing comes of it


def test_mark_passes_after_its_delay_while_it_is_planned() -> None:
    agenda, mark = Agenda(lambda _: 0.0), step(write=None)
    agenda.plan([mark], now=0.0)
    assert agenda.passed == frozenset()
    assert agenda.plan([mark], now=1.0) == (mark,)
    assert agenda.passed == {mark.identity}
    assert agenda.plan([mark], now=2.0) == ()
    assert agenda.left(now=2.0) == ()
    agenda.plan([], now=3.0)
    assert agenda.passed == frozenset()


@pytest.mark.parametrize("about", ["uid", "another"])
def test_steps_with_equal_text_and_object_are_identical(about: str) -> None:
    other = EnvironmentStep(about=about, told="it happens", takes=(0.0, 0.0), write=None)
    assert (other.identity == step().identity) == (about == "uid")
