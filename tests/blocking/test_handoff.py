"""Exactly one side gets the value."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from functools import partial

import pytest

from deltaloop.blocking.handoff import Handoff


def test_what_is_delivered_can_be_taken() -> None:
    handoff = Handoff[str]()
    assert not handoff.wait(0)
    assert handoff.deliver("value")
    assert handoff.wait()
    assert handoff.take() == "value"


def test_an_error_is_raised_where_it_is_taken() -> None:
    handoff = Handoff[str]()
    assert handoff.fail(KeyError("x"))
    with pytest.raises(KeyError):
        handoff.take()


def test_the_first_of_all_outcomes_wins_in_each_order() -> None:
    for order in itertools.permutations(["deliver", "fail", "abandon"]):
        handoff = Handoff[str]()
        outcomes: dict[str, Callable[[], bool]] = {
            "deliver": partial(handoff.deliver, "value"),
            "fail": partial(handoff.fail, KeyError("x")),
            "abandon": handoff.abandon,
        }
        assert [outcomes[name]() for name in order] == [True, False, False], order


def test_a_value_that_comes_too_early_to_give_up_goes_to_whoever_wants_it() -> None:
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


def test_two_threads_never_both_own_a_value_or_neither() -> None:
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
