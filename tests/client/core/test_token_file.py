from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deltaloop.api.redaction import SecretText
from deltaloop.client.core.token_file import TokenFileState
from tests.nightly import examples


def test_token_file_is_read_at_most_once_a_minute() -> None:
    state = TokenFileState()
    assert state.is_due(0.0)
    assert state.read(" one\n", now=0.0)
    assert state.token == SecretText("one")
    assert not state.is_due(59.9)
    assert state.is_due(60.0)


def test_empty_token_file_keeps_last_token() -> None:
    state = TokenFileState()
    state.read("one", now=0.0)
    assert not state.read(" \n", now=60.0)
    assert state.token == SecretText("one")
    assert not state.is_due(100.0)


def test_failed_read_without_token_is_retried_immediately() -> None:
    state = TokenFileState()
    state.read_failed(now=0.0)
    assert state.token is None
    assert state.is_due(0.0)


def test_a_failed_read_keeps_the_last_token_for_a_minute() -> None:
    state = TokenFileState()
    state.read("one", now=0.0)
    state.read_failed(now=60.0)
    assert state.token == SecretText("one")
    assert not state.is_due(119.0)
    assert state.is_due(120.0)


def test_fallback_token_is_used_until_file_is_read() -> None:
    state = TokenFileState(fallback=SecretText("fallback"))
    assert state.is_due(0.0)
    state.read_failed(now=0.0)
    assert state.token == SecretText("fallback")
    state.read("one", now=60.0)
    assert state.token == SecretText("one")


class TokenFileMachine(RuleBasedStateMachine):
    """Against the plain rule: the token is the last good one; due a minute after the last try."""

    def __init__(self) -> None:
        super().__init__()
        self.state = TokenFileState()
        self.now = 0.0
        self.good: str | None = None
        self.tried_at: float | None = None

    @rule(seconds=st.sampled_from([0.5, 30.0, 59.5, 60.0, 90.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(text=st.sampled_from(["a", "b\n", "  c "]))
    def read_good(self, text: str) -> None:
        assert self.state.read(text, now=self.now)
        self.good, self.tried_at = text.strip(), self.now

    @rule()
    def read_failed(self) -> None:
        self.state.read_failed(now=self.now)
        self.tried_at = self.now if self.good is not None else None

    @precondition(lambda self: self.good is not None)
    @rule()
    def read_empty(self) -> None:
        assert not self.state.read("\n", now=self.now)
        self.tried_at = self.now

    @invariant()
    def token_is_the_last_good_one(self) -> None:
        token = self.state.token
        assert (token.reveal() if token else None) == self.good

    @invariant()
    def due_a_minute_after_the_last_try(self) -> None:
        assert self.state.is_due(self.now) == (self.tried_at is None or self.now - self.tried_at >= 60.0)


TokenFileMachine.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=20)
TestTokenFileMachine = TokenFileMachine.TestCase
