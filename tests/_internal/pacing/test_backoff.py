from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop._internal.pacing import LONGEST_ASKED, Backoff, BackoffManager, jitter, retry_after_delay

NO_CHANCE = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_backoff_sequence_without_jitter() -> None:
    manager = BackoffManager()
    assert [manager.next_delay(0.0, random=0.0) for _ in range(8)] == NO_CHANCE


def test_backoff_sequence_with_maximum_jitter() -> None:
    manager = BackoffManager()
    delays = [manager.next_delay(0.0, random=0.999) for _ in range(8)]
    assert delays == [delay + 0.999 * delay for delay in NO_CHANCE]
    assert max(delays) < 60.0


def test_backoff_restarts_after_quiet_period() -> None:
    manager = BackoffManager()
    assert manager.next_delay(0.0, random=0) == 0.8
    assert manager.next_delay(120.0, random=0) == 1.6  # exactly the limit is not yet quiet
    assert manager.next_delay(240.0, random=0) == 3.2  # calls that fail again and again never start over
    assert manager.next_delay(360.0, random=0) == 6.4
    assert manager.next_delay(480.1, random=0) == 0.8


def test_reset_restarts_backoff() -> None:
    manager = BackoffManager(Backoff(initial=1, factor=3, cap=5, jitter=0, reset_after=10))
    assert [manager.next_delay(0, random=0.5) for _ in range(4)] == [1, 3, 5, 5]
    manager.reset()
    assert [manager.next_delay(0, random=0.5) for _ in range(2)] == [1, 3]


def test_initial_delay_is_limited_by_cap() -> None:
    assert BackoffManager(Backoff(initial=9, cap=5)).next_delay(0, random=0) == 5


@pytest.mark.parametrize(("random", "delay"), [(0.0, 10.0), (0.5, 15.0)])
def test_jitter(random: float, delay: float) -> None:
    assert jitter(10.0, 1.0, random=random) == delay
    assert jitter(10.0, 0.0, random=random) == 10.0


@pytest.mark.parametrize(
    "options",
    [
        {name: value}
        for name in ("initial", "cap", "reset_after", "factor", "jitter")
        for value in (-1.0, float("nan"), float("inf"))
    ]
    + [{"initial": 0}, {"cap": 0}, {"reset_after": 0}, {"factor": 0.9}],
)
def test_invalid_backoff_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"Backoff\.{next(iter(options))}"):
        Backoff(**options)


class NaiveBackoff:
    """Counts the calls in a row and raises the delay from the beginning each time."""

    def __init__(self, numbers: Backoff) -> None:
        self.numbers = numbers
        self.calls: list[float] = []

    def next_delay(self, now: float, random: float) -> float:
        if self.calls and now - self.calls[-1] > self.numbers.reset_after:
            self.calls = []
        self.calls.append(now)
        delay = self.numbers.initial
        for _ in self.calls[1:]:
            delay = min(delay * self.numbers.factor, self.numbers.cap)
        delay = min(delay, self.numbers.cap)
        return delay + delay * self.numbers.jitter * random


@given(
    st.builds(
        Backoff, initial=st.floats(0.1, 5), factor=st.floats(1, 4), cap=st.floats(0.1, 60), jitter=st.floats(0, 2)
    ),
    st.lists(st.tuples(st.floats(0, 300), st.floats(0, 1, exclude_max=True), st.booleans()), max_size=20),
)
def test_backoff_matches_model(numbers: Backoff, steps: list[tuple[float, float, bool]]) -> None:
    manager, model, now = BackoffManager(numbers), NaiveBackoff(numbers), 0.0
    for pause, random, reset in steps:
        now += pause
        if reset:
            manager.reset()
            model.calls = []
        delay = manager.next_delay(now, random=random)
        assert delay == pytest.approx(model.next_delay(now, random))
        assert numbers.initial <= delay or delay >= numbers.cap
        assert delay <= numbers.cap * (1 + numbers.jitter) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("asked", "waited"), [(None, 0.0), (0.0, 0.0), (32.0, 32.0), (60.0, 60.0), (61.0, 60.0), (86_400.0, 60.0)]
)
def test_retry_after_is_limited_to_a_minute(asked: float | None, waited: float) -> None:
    assert retry_after_delay(asked) == waited
    assert LONGEST_ASKED == 60.0
