"""The keeper of the log finds what must not be; otherwise a run without violations would say nothing."""

from __future__ import annotations

from typing import Any

from lab.chaos.log_keeper import LogKeeper

DEADLINE = 100.0


def make(*, paused: bool = False, renewed_until: float = DEADLINE) -> LogKeeper:
    return LogKeeper(leads_at_most_until=lambda _: renewed_until, was_paused=lambda _, __, ___: paused)


def write(token: int = 1, asked: float = -0.5, sent: float = -0.4) -> dict[str, Any]:
    times = {"asked_at": DEADLINE + asked, "sent_at": DEADLINE + sent, "deadline": DEADLINE}
    return {"kind": "write", "identity": "a", "token": token, **times}


def test_a_write_in_time_is_accepted() -> None:
    keeper = make()
    assert keeper.note(write(), DEADLINE - 0.3) == "accepted"
    assert (keeper.accepted, keeper.violations, keeper.holder) == (1, [], "a")


def test_a_guard_that_lets_a_late_write_pass_is_found() -> None:
    keeper = make(paused=True)
    keeper.note(write(asked=0.01, sent=0.02), DEADLINE + 0.02)
    assert len(keeper.violations) == 1
    assert "was not refused" in keeper.violations[0]


def test_a_pause_between_check_and_send_is_counted_and_stopped_by_the_token() -> None:
    keeper = make(paused=True)
    keeper.note(write(token=7), DEADLINE)
    assert keeper.note(write(token=3, sent=5.0), DEADLINE + 5) == "refused"
    assert (keeper.late_paused, keeper.stopped_by_token, keeper.violations) == (1, 1, [])


def test_an_old_token_without_a_pause_is_found() -> None:
    keeper = make()
    keeper.note(write(token=7), DEADLINE)
    assert keeper.note(write(token=3), DEADLINE) == "refused"
    assert "an old token without a pause" in keeper.violations[0]


def test_a_deadline_that_is_counted_wrongly_is_found_by_what_the_relay_saw() -> None:
    keeper = make(renewed_until=DEADLINE - 3)
    keeper.note(write(), DEADLINE)
    assert "long after the last renewal" in keeper.violations[0]


def test_a_moment_between_check_and_send_is_counted_apart() -> None:
    keeper = make()
    keeper.note(write(asked=-0.001, sent=0.001), DEADLINE + 0.002)
    assert (keeper.late_preempted, keeper.violations) == (1, [])
