"""When a loop counts as blocked: every block above the limit, no pause of the whole process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop._internal.pacing import Wait
from deltaloop.runtime.core.watchdog import AGAIN, Blocked, Ping, Watchdog


def asked(limit: float = 1.0) -> Watchdog:
    """Return one that has asked at 0.25 s."""
    watchdog = Watchdog(0.0, limit=limit)
    assert watchdog.ask(0.0, 0.0) == Wait(0.25)
    assert watchdog.ask(0.25, 0.0) == Ping()
    return watchdog


def test_responsive_loop_is_pinged_again_after_quarter_of_limit() -> None:
    watchdog = asked()
    assert watchdog.ask(0.25, 0.0) == Wait(1.0)
    assert watchdog.answered(0.3) is None
    assert watchdog.ask(0.3, 0.0) == Wait(0.55)
    assert watchdog.ask(0.55, 0.0) == Ping()


def test_blocked_loop_is_reported_at_three_quarters_and_every_half_minute() -> None:
    watchdog = asked()
    assert watchdog.ask(0.999, 0.0) == Wait(1.0)
    assert watchdog.ask(1.0, 0.0) == Blocked(0.75)
    assert watchdog.ask(1.0, 0.0) == Wait(1.0 + AGAIN)
    assert watchdog.ask(31.0, 0.0) == Blocked(30.75)
    assert watchdog.answered(32.25) == 32.0
    assert watchdog.ask(32.25, 0.0) == Wait(32.5)


def test_end_of_block_is_reported_only_after_report_of_block() -> None:
    watchdog = asked()
    assert watchdog.answered(0.9) is None
    assert watchdog.ask(1.15, 0.0) == Ping()
    assert watchdog.ask(1.9, 0.0) == Blocked(0.75)
    assert watchdog.answered(2.15) == 1.0
    assert watchdog.ask(2.4, 0.0) == Ping()
    assert watchdog.answered(2.5) is None


def test_pong_without_ping_is_ignored() -> None:
    watchdog = Watchdog(0.0, limit=1.0)
    assert watchdog.answered(0.1) is None
    assert watchdog.ask(0.1, 0.0) == Wait(0.25)


def test_suspended_process_is_not_blocked() -> None:
    watchdog = asked()
    assert watchdog.ask(100.0, 0.1) == Wait(100.75)  # the watchdog itself comes 99 s too late, and nothing worked
    assert watchdog.ask(100.75, 0.1) == Blocked(0.75)  # but when it runs again, the loop has to answer


@pytest.mark.parametrize(("used", "expected"), [(9.9, Blocked(10.0)), (5.0, Blocked(10.0)), (4.99, Wait(11.0))])
def test_loop_that_keeps_global_lock_is_blocked_despite_late_watchdog(used: float, expected: object) -> None:
    assert asked().ask(10.25, used) == expected, "it works for half of the time at least"


@pytest.mark.parametrize(("late", "expected"), [(0.75, Blocked(1.5)), (0.76, Wait(2.51))])
def test_slightly_late_watchdog_reports_block(late: float, expected: object) -> None:
    effect = asked().ask(1.0 + late, 0.0)
    assert effect == expected or (
        isinstance(effect, Wait) and isinstance(expected, Wait) and effect.until == pytest.approx(expected.until)
    )


@given(
    limit=st.floats(0.01, 100.0),
    begins=st.floats(0.0, 10.0),
    length=st.floats(0.0, 10.0),
)
def test_all_blocks_above_limit_and_none_below_three_quarters_are_found(
    limit: float, begins: float, length: float
) -> None:
    """Times are in units of the limit; a seeded bug, such as a longer patience, is found at once."""
    begins_at, ends_at = begins * limit, (begins + length) * limit
    watchdog, now, found = Watchdog(0.0, limit=limit), 0.0, False
    pending = False
    while now <= ends_at + limit:
        if pending and not begins_at <= now < ends_at:
            watchdog.answered(now)
            pending = False
        match watchdog.ask(now, 0.0):
            case Ping():
                pending = True
            case Blocked():
                found = True
            case Wait(until):
                now = min(until, ends_at) if pending and now < ends_at < until else until
    if length > 1.0:
        assert found
    if length < 0.75 - 1e-9:
        assert not found


def test_cpu_time_before_ping_is_ignored() -> None:
    watchdog = Watchdog(0.0, limit=1.0)
    assert watchdog.ask(0.25, 50.0) == Ping()
    assert watchdog.ask(100.0, 50.0) == Wait(100.75), "the process stood still: no time was used meanwhile"
