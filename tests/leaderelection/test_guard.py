"""The guard of a term; that every writing verb asks it is shown in tests/client/test_write_check.py."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from deltaloop.errors import LeadershipLostError
from deltaloop.leaderelection import LeadershipGuard
from tests.having import having


@dataclass
class Clock:
    now: float = 5.0


def make(clock: Clock) -> LeadershipGuard:
    return LeadershipGuard(lambda: 10.0, lambda: clock.now, lock="default/x", identity="a", fencing_token="7")


def test_writes_are_allowed_before_deadline_only() -> None:
    clock = Clock()
    guard = make(clock)
    clock.now = 9.999
    guard.check("PUT /x")
    clock.now = 10.0
    with pytest.raises(LeadershipLostError, check=having(identity="a", fencing_token="7")) as caught:
        guard.check("PUT /x")
    assert (caught.value.lock, caught.value.identity, caught.value.fencing_token) == ("default/x", "a", "7")


def test_closed_guard_does_not_reopen() -> None:
    guard = make(Clock())
    assert guard.is_open
    guard.close()
    assert not guard.is_open
    with pytest.raises(LeadershipLostError):
        guard.check("PUT /x")


def test_rejection_is_distinguished_from_other_terms() -> None:
    guard, other = (
        make(Clock(now=10.0)),
        LeadershipGuard(lambda: 0.0, lambda: 1.0, lock="default/x", identity="a", fencing_token="8"),
    )
    for whose, expected in ((guard, True), (other, False)):
        with pytest.raises(LeadershipLostError) as caught:
            whose.check("PUT /x")
        assert guard.caused(caught.value) is expected
        assert guard.caused(ExceptionGroup("workers", [caught.value])) is expected
        assert not guard.caused(ExceptionGroup("workers", [caught.value, KeyError("real")]))
