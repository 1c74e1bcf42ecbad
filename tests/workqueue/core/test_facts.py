"""How a run ended."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.workqueue.core.facts import Again, Failed, Finished, Interrupted, RunOutcome, Succeeded, ending_of


def test_body_without_error_succeeds_or_requests_later_run() -> None:
    assert ending_of(None, None) == Succeeded()
    assert ending_of(None, Again(3.0)) == Again(3.0)


def test_exception_is_failure_despite_requested_run() -> None:
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
def test_base_exception_interrupts_run(error: BaseException) -> None:
    assert ending_of(error, None) == Interrupted()


@pytest.mark.parametrize(
    "fate", ["finished", "retried", "repeated", "put back", "unhandled", "given up", "parked", "over"]
)
def test_only_handled_errors_are_suppressed(fate: RunOutcome) -> None:
    taken_care_of = fate in ("retried", "given up", "parked")
    assert Finished(fate=fate, error=KeyError("x")).suppressed == taken_care_of
    assert not Finished(fate=fate).suppressed
