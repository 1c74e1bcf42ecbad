from __future__ import annotations

import pytest

import deltaloop as dl
from deltaloop.errors import InvalidArgumentError
from deltaloop.testing.core.attempts import Attempts, EventuallyError
from tests.having import having


def make(*, within: float = 1.0, every: float = 0.4) -> Attempts:
    return Attempts("the pod is there", within=within, every=every, now=10.0)


def test_attempts_are_made_immediately_periodically_and_at_end() -> None:
    attempts, now = make(), 10.0
    pauses = list[float]()
    while True:
        attempts.begin()
        assert not attempts.returned(0)
        pause = attempts.pause(now)
        if pause is None:
            break
        pauses.append(round(pause, 6))
        now += pause
    assert pauses == [0.4, 0.4, 0.2]
    assert now == 11.0
    error = attempts.failure()
    assert str(error) == "the pod is there did not become true within 1 s (4 attempts): the last attempt returned 0"
    assert (error.within, error.attempts, error.last_value) == (1.0, 4, 0)
    assert isinstance(error, AssertionError)
    assert isinstance(error, dl.DeltaloopError)


def test_zero_duration_means_one_attempt() -> None:
    once = make(within=0.0)
    once.begin()
    assert once.pause(10.0) is None
    late = make()
    late.begin()
    assert late.pause(11.5) is None
    assert str(late.failure()).endswith("(1 attempt): the last attempt has not returned")


def test_early_end_of_last_wait_is_tolerated() -> None:
    attempts = make(every=2.0)
    attempts.begin()
    assert attempts.pause(10.5) == 0.5
    attempts.begin()
    assert attempts.pause(11.0 - 1e-12) is None


def test_true_result_succeeds_and_false_result_is_reported() -> None:
    attempts = make()
    assert attempts.returned(["x"])
    said: str
    value: object
    for value, said in (
        (False, "the last attempt returned False"),
        (list[str](), "the last attempt returned []"),
        (None, "the last attempt returned None, not a true value (end a check of asserts with return True)"),
    ):
        attempts.begin()
        assert not attempts.returned(value)
        assert str(attempts.failure()).endswith(said)


def test_cause_is_error_of_last_attempt() -> None:
    attempts = make()
    attempts.begin()
    attempts.raised(LookupError("first"))
    attempts.begin()
    last = AssertionError("assert 1 == 2")
    attempts.raised(last)
    error = attempts.failure()
    assert error.__cause__ is last
    assert str(error).endswith("(2 attempts): the last attempt raised AssertionError: assert 1 == 2")
    attempts.begin()
    attempts.raised(KeyError())
    assert str(attempts.failure()).endswith("the last attempt raised KeyError")
    attempts.begin()
    attempts.returned(0)
    assert attempts.failure().__cause__ is None


def test_failure_is_short_and_redacted() -> None:
    attempts = make()
    attempts.begin()
    attempts.raised(LookupError("Authorization: Bearer abcdefghijklmnop"))
    assert "abcdefghijklmnop" not in str(attempts.failure())

    class Falsy(list[str]):
        def __repr__(self) -> str:
            return "x" * 10_000

    attempts.begin()
    attempts.returned(Falsy())
    assert len(str(attempts.failure())) < 600


@pytest.mark.parametrize(("within", "every"), [(-1.0, 0.1), (1.0, 0.0), (1.0, -1.0), (float("nan"), 1.0)])
def test_invalid_durations_are_rejected(within: float, every: float) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="eventually")):
        make(within=within, every=every)


def test_unnamed_check_is_called_it() -> None:
    attempts = Attempts("", within=0, every=1, now=0)
    assert isinstance(attempts.failure(), EventuallyError)
    assert str(attempts.failure()) == "it did not become true within 0 s (0 attempts): no attempt was made"
