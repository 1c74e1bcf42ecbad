"""Large answers on their way out: alike ones are one, and all together are bounded."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deltaloop.apiserver.core.wire.incoming import Outgoing
from tests.nightly import examples


def test_equal_bodies_share_one_copy() -> None:
    outgoing = Outgoing(most=10)
    first, second = b"".join([b"123", b"456"]), b"".join([b"1234", b"56"])
    assert first is not second
    assert outgoing.take(first) is first
    assert outgoing.take(second) is first
    assert outgoing.held == 6
    assert outgoing.take(b"other") is None
    outgoing.give_back(first)
    assert outgoing.take(b"other") is None
    outgoing.give_back(second)
    assert outgoing.held == 0
    assert outgoing.take(b"other") == b"other"


def test_body_larger_than_the_bound_is_sent_alone() -> None:
    outgoing = Outgoing(most=4)
    assert outgoing.take(b"123456") is not None
    assert outgoing.take(b"1") is None


class _Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.outgoing = Outgoing(most=8)
        self.sending: list[bytes] = []

    @rule(letter=st.sampled_from("abcd"), size=st.integers(1, 9))
    def take(self, letter: str, size: int) -> None:
        body = letter.encode() * size
        held = sum(map(len, set(self.sending)))
        fits = body in self.sending or not held or held + size <= 8
        assert (self.outgoing.take(body) == body) == fits
        if fits:
            self.sending.append(body)

    @precondition(lambda self: self.sending)
    @rule(random=st.floats(0, 1, exclude_max=True))
    def give_back(self, random: float) -> None:
        self.outgoing.give_back(self.sending.pop(int(random * len(self.sending))))

    @invariant()
    def counts(self) -> None:
        assert self.outgoing.held == sum(map(len, set(self.sending)))


TestOutgoing = _Machine.TestCase
TestOutgoing.settings = settings(max_examples=examples(40), stateful_step_count=20)
