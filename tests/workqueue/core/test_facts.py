"""How a run ended."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.workqueue.core.facts import Again, Failed, Finished, Interrupted, RunOutcome, Succeeded, ending_of


def test_a_body_that_raises_nothing_succeeded_or_asks_again() -> None:
    assert ending_of(None, None) == Succeeded()
    assert ending_of(None, Again(3.0)) == Again(3.0)


def test_an_exception_is_a_failure_whatever_the_body_asked_for() -> None:
    error = KeyError("x")
    assert ending_of(error, Again(3.0)) == Failed(error)
    assert isinstance(ending_of(ExceptionGroup("several", [error]), None), Failed)


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        SystemExit(1),
        GeneratorExit(),
        BaseExceptionGroup("several", [KeyError("x"), asyncio.CancelledError()]),
    ],
)
def test_what_is_no_exception_interrupts(error: BaseException) -> None:
    assert ending_of(error, None) == Interrupted()


@pytest.mark.parametrize("fate", RunOutcome)
def test_only_errors_that_the_queue_took_care_of_are_suppressed(fate: RunOutcome) -> None:
    taken_care_of = fate in (RunOutcome.RETRIED, RunOutcome.GIVEN_UP, RunOutcome.PARKED)
    assert Finished(fate=fate, error=KeyError("x")).suppressed == taken_care_of
    assert not Finished(fate=fate).suppressed
