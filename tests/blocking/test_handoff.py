"""Exactly one side gets the value."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from functools import partial

import pytest

from deltaloop.blocking.handoff import Handoff
from tests.blocking.paused import Paused


def test_delivered_value_can_be_taken() -> None:
    handoff = Handoff[str]()
    assert not handoff.wait(0)
    assert handoff.deliver("value")
    assert handoff.wait()
    assert handoff.take() == "value"


def test_error_is_raised_by_take() -> None:
    handoff = Handoff[str]()
    assert handoff.fail(KeyError("x"))
    with pytest.raises(KeyError):
        handoff.take()


def test_first_outcome_wins_in_each_order() -> None:
    for order in itertools.permutations(["deliver", "fail", "abandon"]):
        handoff = Handoff[str]()
        outcomes: dict[str, Callable[[], bool]] = {
            "deliver": partial(handoff.deliver, "value"),
            "fail": partial(handoff.fail, KeyError("x")),
            "abandon": handoff.abandon,
        }
        assert [outcomes[name]() for name in order] == [True, False, False], order


def test_value_delivered_before_abandoning_goes_to_callback() -> None:
    handoff, found = Handoff[str](), list[str]()
    handoff.deliver("value")
    handoff.abandon_for(found.append)
    assert found == ["value"]
    failed = Handoff[str]()
    failed.fail(KeyError("x"))
    failed.abandon_for(found.append)
    waiting = Handoff[str]()
    waiting.abandon_for(found.append)
    assert found == ["value"]
    assert not waiting.deliver("late")


def test_exactly_one_thread_owns_value() -> None:
    for _ in range(200):
        handoff, owners = Handoff[str](), list[str]()
        barrier = threading.Barrier(2)

        def loop_side(
            handoff: Handoff[str] = handoff, barrier: threading.Barrier = barrier, owners: list[str] = owners
        ) -> None:
            barrier.wait()
            if not handoff.deliver("value"):
                owners.append("loop")

        thread = threading.Thread(target=loop_side)
        thread.start()
        barrier.wait()
        handoff.abandon_for(owners.append)
        thread.join()
        assert len(owners) == 1


def test_raised_error_is_not_kept_in_memory() -> None:
    class OurError(Exception):
        pass

    handoff = Handoff[str]()
    handoff.fail(OurError())
    there: weakref.ref[OurError] | None = None
    try:
        handoff.take()
    except OurError as error:
        there = weakref.ref(error)
    assert there is not None
    assert there() is None, "no cycle has to be found for it"


def test_value_without_callback_is_dropped() -> None:
    handoff = Handoff[str]()
    handoff.deliver("value")
    handoff.abandon_for(None)


@pytest.mark.parametrize(
    ("first", "line", "second"),
    [
        ("deliver", "self._value.append(value)", "abandon"),
        ("fail", "self._error = error", "abandon"),
        ("abandon", "self._abandoned = True", "deliver"),
        ("abandon", "self._abandoned = True", "fail"),
    ],
)
def test_second_outcome_waits_for_first(first: str, line: str, second: str) -> None:
    handoff = Handoff[str]()
    outcomes: dict[str, Callable[[], bool]] = {
        "deliver": partial(handoff.deliver, "value"),
        "fail": partial(handoff.fail, KeyError("x")),
        "abandon": handoff.abandon,
    }
    paused = Paused(outcomes[first], line)
    found = list[bool]()
    thread = threading.Thread(target=lambda: found.append(outcomes[second]()))
    thread.start()
    thread.join(0.02)
    assert found == []
    paused.go_on.set()
    for each in (paused.thread, thread):
        each.join(5)
    assert (paused.found, found) == ([True], [False])
