from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from deltaloop._internal.pacing import Wait
from deltaloop.leaderelection.core.election import Beat, Heartbeat, Silent
from tests.nightly import examples


def make() -> Heartbeat:
    return Heartbeat(0.0, interval=2.0, deadline=10.0)


def test_beats_are_requested_immediately_and_at_each_interval() -> None:
    heartbeat = make()
    assert heartbeat.ask(0.0) == Beat()
    assert heartbeat.ask(1.0) == Wait(10.0)
    heartbeat.answered(1.0)
    assert heartbeat.ask(1.0) == Wait(3.0)
    assert heartbeat.ask(3.0) == Beat()


def test_silence_starts_at_request_and_is_permanent() -> None:
    heartbeat = make()
    heartbeat.ask(0.0)
    assert heartbeat.ask(9.9) == Wait(10.0)
    assert heartbeat.ask(10.5) == Silent(10.5)
    heartbeat.answered(10.6)
    assert heartbeat.ask(11.0) == Silent(10.5)


def test_response_after_deadline_is_ignored() -> None:
    heartbeat = make()
    heartbeat.ask(0.0)
    heartbeat.answered(10.0)
    assert heartbeat.ask(10.0) == Silent(10.0)


def test_unrequested_response_is_ignored() -> None:
    heartbeat = make()
    heartbeat.answered(5.0)
    assert heartbeat.ask(5.0) == Beat()


def is_right(heartbeat: Heartbeat, steps: list[tuple[float, bool]]) -> bool:
    """Follow a naive model: the time of the question that is open; silent once it is 10 s old."""
    now, open_since, silent = 0.0, None, False
    for pause, answers in steps:
        now += pause
        if answers:
            if open_since is not None and now - open_since >= 10.0:
                silent = True
            elif open_since is not None:
                open_since = None
            heartbeat.answered(now)
        effect = heartbeat.ask(now)
        silent = silent or (open_since is not None and now - open_since >= 10.0)
        if isinstance(effect, Silent) != silent:
            return False
        if isinstance(effect, Beat):
            if open_since is not None:
                return False
            open_since = now
    return True


STEPS = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 2.0, 5.0, 9.5, 10.0, 12.0]), st.booleans()), max_size=30)


@settings(max_examples=examples(200))
@given(STEPS)
def test_heartbeat_is_silent_when_request_is_unanswered_at_deadline(steps: list[tuple[float, bool]]) -> None:
    assert is_right(make(), steps)
