"""The table of what a reconcile's end means, and its page in the docs."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.errors import (
    InvalidArgumentError,
    InvalidResourceVersionError,
    InvalidSelectorError,
    MalformedObjectError,
    UnknownResourceError,
)
from deltaloop.client.errors import ConfigError
from deltaloop.runtime.core.outcomes import (
    ROWS,
    Action,
    Case,
    Ended,
    InvalidResultError,
    Raised,
    ReconcileTimeoutError,
    Result,
    Returned,
    Stopped,
    TimedOut,
    decide,
)
from deltaloop.workqueue.errors import TerminalError
from tests.having import having


@pytest.mark.parametrize(
    ("ended", "case", "action", "result", "delay"),
    [
        (Returned(None), Case.NOTHING, Action.FORGET, "success", 0.0),
        (Returned(Result()), Case.NOTHING, Action.FORGET, "success", 0.0),
        (Returned(Result(requeue_after=7.5)), Case.AFTER, Action.REQUEUE_AFTER, "requeue_after", 7.5),
        (Returned(Result(requeue_after=0.0)), Case.AFTER, Action.REQUEUE_AFTER, "requeue_after", 0.0),
        (Returned(Result(requeue_after=7.5, requeue=True)), Case.AFTER, Action.REQUEUE_AFTER, "requeue_after", 7.5),
        (Returned(Result(requeue_after=7.5, jitter=0.1)), Case.AFTER, Action.REQUEUE_AFTER, "requeue_after", 7.5),
        (Returned(Result(requeue=True)), Case.REQUEUE, Action.RATE_LIMIT, "requeue", 0.0),
        (Returned(True), Case.INVALID, Action.PARK, "error", 0.0),
        (Raised(ValueError("x")), Case.ERROR, Action.RATE_LIMIT, "error", 0.0),
        (Raised(TerminalError("x")), Case.TERMINAL, Action.PARK, "error", 0.0),
        (Raised(ExceptionGroup("x", [TerminalError("y")])), Case.TERMINAL, Action.PARK, "error", 0.0),
        (Raised(ExceptionGroup("x", [TerminalError("y"), ValueError()])), Case.ERROR, Action.RATE_LIMIT, "error", 0.0),
        (Raised(InvalidArgumentError("x")), Case.TERMINAL, Action.PARK, "error", 0.0),
        (Raised(InvalidSelectorError("x")), Case.TERMINAL, Action.PARK, "error", 0.0),
        (Raised(MalformedObjectError("x", given=True)), Case.TERMINAL, Action.PARK, "error", 0.0),
        (Raised(MalformedObjectError("x")), Case.ERROR, Action.RATE_LIMIT, "error", 0.0),
        (Raised(InvalidResourceVersionError("x")), Case.ERROR, Action.RATE_LIMIT, "error", 0.0),
        (Raised(ConfigError("x")), Case.ERROR, Action.RATE_LIMIT, "error", 0.0),
        (Raised(UnknownResourceError("x", name="Fo")), Case.TERMINAL, Action.PARK, "error", 0.0),
        (Raised(UnknownResourceError("discovery failed")), Case.ERROR, Action.RATE_LIMIT, "error", 0.0),
        (
            Raised(ExceptionGroup("x", [TerminalError("y"), InvalidArgumentError("z")])),
            Case.TERMINAL,
            Action.PARK,
            "error",
            0.0,
        ),
        (TimedOut(30.0), Case.TIMEOUT, Action.RATE_LIMIT, "error", 0.0),
        (Stopped(), Case.INTERRUPTED, Action.PUT_BACK, "", 0.0),
    ],
)
def test_each_outcome_has_expected_decision(
    ended: Ended, case: Case, action: Action, result: str, delay: float
) -> None:
    decision = decide(ended)
    assert (decision.case, decision.action, decision.row.result, decision.delay) == (case, action, result, delay)
    assert decision.row is ROWS[case]


@pytest.mark.parametrize("name", ["example.com/v1/Foo", "Foo", "foos.example.com", "foos"])
def test_a_declared_kind_can_be_served_later(name: str) -> None:
    error = UnknownResourceError("x", name=name)
    assert decide(Raised(error), declared=["ConfigMap", "Foo"]).action is Action.RATE_LIMIT
    assert decide(Raised(error), declared=["ConfigMap"]).action is Action.PARK


def test_errors_of_outcomes_describe_cause() -> None:
    invalid, timeout = decide(Returned(7)).error, decide(TimedOut(2.0)).error
    assert isinstance(invalid, InvalidResultError)
    assert invalid.returned in str(invalid)
    assert str(invalid) == "the reconcile function returned an invalid value of type int. Return None or a Result."
    assert decide(Returned(7)).terminal
    assert isinstance(timeout, ReconcileTimeoutError)
    assert str(timeout) == "the reconcile did not end within 2 s"
    assert timeout.timeout == 2.0
    for error in (ValueError("x"), TerminalError("x")):
        assert decide(Raised(error)).error is error
    assert decide(TimedOut(2.0)).timed_out
    assert decide(Raised(TerminalError())).terminal


async def test_returned_coroutine_is_reported_as_missing_await() -> None:
    async def reconcile() -> None: ...

    call = reconcile()
    error = decide(Returned(call)).error
    call.close()
    what_to_do = "Declare it with `async def` and await the call, or use ctx.wait(...)."
    assert str(error) == f"the reconcile function returned an invalid value of type coroutine. {what_to_do}"


@pytest.mark.parametrize("delay", [float("nan"), float("inf")])
def test_invalid_requeue_delay_is_rejected(delay: Any) -> None:
    with pytest.raises(ValueError, check=having(argument="Result.requeue_after")):
        Result(requeue_after=delay)


def test_every_case_has_a_row() -> None:
    assert set(ROWS) == set(Case)
