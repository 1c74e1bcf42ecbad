from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop._internal.option_types import OptionTypeError
from deltaloop.client.core.watch_limits import WatchLimitOptions, WatchLimits
from tests.having import having

OPTIONS = WatchLimitOptions()


def test_without_timeout_and_bookmarks_there_is_no_limit() -> None:
    limits = WatchLimits(OPTIONS, now=5.0, timeout_seconds=None)
    limits.saw_bytes(1000.0)
    assert limits.give_up_at() is None


def test_deadline_is_15_s_after_requested_timeout() -> None:
    limits = WatchLimits(OPTIONS, now=5.0, timeout_seconds=300)
    assert limits.give_up_at() == 320.0
    limits.saw_bytes(310.0)
    assert limits.give_up_at() == 320.0
    assert "15 s after the requested 300 s" in limits.reason(320.0)


def test_idle_limit_starts_with_first_bookmark() -> None:
    limits = WatchLimits(OPTIONS, now=0.0, timeout_seconds=None)
    limits.saw_bytes(10.0)
    assert limits.give_up_at() is None
    limits.saw_bookmark()
    assert limits.give_up_at() == 100.0
    limits.saw_bytes(60.0)
    assert limits.give_up_at() == 150.0
    assert "90 s" in limits.reason(150.0)


@given(
    st.none() | st.integers(1, 600),
    st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=10),
)
def test_watch_limits_agree_with_plain_rule(timeout_seconds: int | None, steps: list[tuple[float, bool]]) -> None:
    limits = WatchLimits(OPTIONS, now=0.0, timeout_seconds=timeout_seconds)
    now, bookmarks = 0.0, False
    for pause, is_bookmark in steps:
        now += pause
        limits.saw_bytes(now)
        if is_bookmark:
            bookmarks = True
            limits.saw_bookmark()
        wanted = [timeout_seconds + 15.0] if timeout_seconds is not None else []
        wanted += [now + 90.0] if bookmarks else []
        assert limits.give_up_at() == (min(wanted) if wanted else None)


@pytest.mark.parametrize("number", [0.0, -1.0, float("inf"), float("nan")])
def test_invalid_idle_timeout_is_rejected(number: float) -> None:
    with pytest.raises(ValueError, check=having(argument="WatchLimitOptions.idle_timeout")):
        WatchLimitOptions(idle_timeout=number)


@pytest.mark.parametrize("field", ["deadline_slack", "idle_timeout"])
def test_each_limit_is_checked_by_its_name(field: str) -> None:
    wrong: dict[str, Any] = {field: 0.0}
    with pytest.raises(ValueError, check=having(argument=f"WatchLimitOptions.{field}")):
        WatchLimitOptions(**wrong)
    wrong = {field: "15"}
    with pytest.raises(OptionTypeError, check=having(option=f"WatchLimitOptions.{field}")):
        WatchLimitOptions(**wrong)


def test_last_byte_time_is_request_time_before_first_byte() -> None:
    assert WatchLimits(WatchLimitOptions(), now=5.0, timeout_seconds=None).last_byte_at == 5.0


def test_idle_watch_is_named_before_deadline() -> None:
    limits = WatchLimits(WatchLimitOptions(), now=0.0, timeout_seconds=300)
    limits.saw_bookmark()
    assert limits.give_up_at() == 90.0
    assert limits.reason(90.0) == "the server sent no event or bookmark for 90 s"
    assert limits.reason(315.0) == "the server did not end the watch within 15 s after the requested 300 s"
