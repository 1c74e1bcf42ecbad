from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deltaloop.client.core.credential import Credential, bearer
from deltaloop.client.core.expiring_credential import ExpiringCredential
from tests.nightly import examples

A, B = bearer("a"), bearer("b")
ERROR = ValueError("no")


def with_credential(
    credential: Credential = A, *, expires_at: float | None = None, now: float = 0.0
) -> ExpiringCredential:
    state = ExpiringCredential()
    state.renewed(credential, expires_at=expires_at, now=now)
    return state


def test_new_state_has_no_credential() -> None:
    state = ExpiringCredential()
    assert state.usable(0.0) is None
    assert state.failure(0.0) is None


def test_credential_without_expiry_is_always_usable() -> None:
    assert with_credential().usable(1e12) is A


def test_credential_is_renewed_ten_seconds_before_expiry() -> None:
    state = with_credential(expires_at=3600.0)
    assert state.usable(3589.9) is A
    assert state.usable(3590.0) is None


def test_short_lived_credential_has_short_margin() -> None:
    state = with_credential(expires_at=20.0)
    assert state.usable(17.9) is A
    assert state.usable(18.0) is None


def test_expired_credential_is_renewed() -> None:
    assert with_credential(expires_at=-5.0).usable(0.0) is None


def test_a_failure_is_remembered_for_a_second() -> None:
    state = ExpiringCredential()
    assert state.renewal_failed(ERROR, 5.0) is None
    assert state.failure(5.9) is ERROR
    assert state.failure(6.0) is None
    assert state.failure(4.0) is None, "a clock that was set back must not prolong it"
    state.renewal_failed(ERROR, 10.0)
    state.renewed(A, expires_at=None, now=10.5)
    assert state.failure(10.5) is None


def test_failed_renewal_before_expiry_keeps_credential() -> None:
    state = with_credential(expires_at=3600.0)
    assert state.renewal_failed(ERROR, 3595.0) is A
    assert state.usable(3595.5) is A
    assert state.usable(3596.0) is None, "a second later it is tried again"
    assert state.renewal_failed(ERROR, 3600.0) is None


def test_rejected_credential_is_not_used_again() -> None:
    state = with_credential()
    state.refused(A)
    assert state.usable(1.0) is None
    assert state.renewal_failed(ERROR, 1.0) is None
    assert state.usable(1.5) is None
    state.renewed(B, expires_at=None, now=2.0)
    assert state.usable(2.0) is B


def test_late_rejection_of_previous_credential_is_ignored() -> None:
    state = with_credential()
    state.renewed(B, expires_at=None, now=1.0)
    state.refused(A)
    assert state.usable(1.0) is B


def test_renewed_rejected_credential_is_used_for_ten_seconds() -> None:
    state = with_credential()
    state.refused(A)
    state.renewed(A, expires_at=None, now=100.0)
    state.refused(A)
    assert state.usable(109.9) is A
    assert state.usable(110.0) is None


class Machine(RuleBasedStateMachine):
    """Against the plain history: what was had last, was it refused, when did renewals come and fail."""

    make = ExpiringCredential

    def __init__(self) -> None:
        super().__init__()
        self.state = self.make()
        self.now = 1000.0
        self.last: tuple[Credential, float | None, float] | None = None
        self.refused_one: Credential | None = None
        self.failed_at: float | None = None
        self.came_again = False

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0, 9.5, 10.0, 50.0, -3.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(left=st.sampled_from([12.0, 9.0, 1.5, 0.5]))
    def expiry_comes_near(self, left: float) -> None:
        if self.last is not None and self.last[1] is not None:
            self.now = self.last[1] - left

    @rule(credential=st.sampled_from([A, B]), lifetime=st.sampled_from([None, 3600.0, 20.0, 0.0, -1.0]))
    def renewed(self, credential: Credential, lifetime: float | None) -> None:
        expires_at = None if lifetime is None else self.now + lifetime
        self.state.renewed(credential, expires_at=expires_at, now=self.now)
        self.last = (credential, expires_at, self.now)
        self.failed_at = None
        self.came_again = credential == self.refused_one

    @rule(credential=st.sampled_from([A, B]))
    def refused(self, credential: Credential) -> None:
        self.state.refused(credential)
        if self.last is not None and self.last[0] == credential:
            if self.refused_one != credential:
                self.came_again = False
            self.refused_one = credential

    @rule()
    def renewal_failed(self) -> None:
        serves = self.state.renewal_failed(ERROR, self.now)
        self.failed_at = self.now
        alive = self.last is not None and (self.last[1] is None or self.now < self.last[1])
        expected = self.last[0] if self.last and alive and self.last[0] != self.refused_one else None
        assert serves == expected

    @invariant()
    def usable_is_what_the_rules_say(self) -> None:
        usable = self.state.usable(self.now)
        recently_failed = self.failed_at is not None and 0 <= self.now - self.failed_at < 1.0
        assert (self.state.failure(self.now) is not None) == recently_failed
        if self.last is None:
            assert usable is None
            return
        credential, expires_at, had_at = self.last
        left = float("inf") if expires_at is None else expires_at - self.now
        if left <= 0:
            assert usable is None
        elif credential == self.refused_one:
            assert (usable is not None) == (self.came_again and 0 <= self.now - had_at < 10.0)
        elif recently_failed:
            assert usable == credential
        else:
            margin = 0.0 if expires_at is None else min(10.0, (expires_at - had_at) / 10)
            assert (usable == credential) == (left > margin)


Machine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=20)
TestMachine = Machine.TestCase
