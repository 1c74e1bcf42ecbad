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


def test_write_before_deadline_is_accepted() -> None:
    keeper = make()
    assert keeper.note(write(), DEADLINE - 0.3) == "accepted"
    assert (keeper.accepted, keeper.violations, keeper.holder) == (1, [], "a")


def test_late_write_passed_by_guard_is_detected() -> None:
    keeper = make(paused=True)
    keeper.note(write(asked=0.01, sent=0.02), DEADLINE + 0.02)
    assert len(keeper.violations) == 1
    assert "was not refused" in keeper.violations[0]


def test_write_delayed_after_check_is_rejected_by_token() -> None:
    keeper = make(paused=True)
    keeper.note(write(token=7), DEADLINE)
    assert keeper.note(write(token=3, sent=5.0), DEADLINE + 5) == "refused"
    assert (keeper.late_paused, keeper.stopped_by_token, keeper.violations) == (1, 1, [])


def test_old_token_without_pause_is_detected() -> None:
    keeper = make()
    keeper.note(write(token=7), DEADLINE)
    assert keeper.note(write(token=3), DEADLINE) == "refused"
    assert "an old token without a pause" in keeper.violations[0]


def test_wrong_deadline_is_detected_from_relay_data() -> None:
    keeper = make(renewed_until=DEADLINE - 3)
    keeper.note(write(), DEADLINE)
    assert "long after the last renewal" in keeper.violations[0]


def test_preemption_after_check_is_counted_separately() -> None:
    keeper = make()
    keeper.note(write(asked=-0.001, sent=0.001), DEADLINE + 0.002)
    assert (keeper.late_preempted, keeper.violations) == (1, [])
