"""The relay's decisions: when what is passed on, held, harmed or thrown away."""

from __future__ import annotations

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from deltaloop.testing import Corrupt, Cut, Delay, Direction, HalfOpen, RelayFault, Reset, Stall, Throttle
from deltaloop.testing.injected_faults.core.relay import BUFFER_LIMIT, Act, Close, Finish, RelayMachine, Send
from tests.nightly import examples

TO_SERVER, TO_CLIENT = Direction.TO_SERVER, Direction.TO_CLIENT


def sent(acts: list[Act], direction: Direction = TO_CLIENT) -> bytes:
    return b"".join(act.data for act in acts if isinstance(act, Send) and act.direction is direction)


def started(*faults: RelayFault, now: float = 0.0) -> RelayMachine:
    return RelayMachine(faults, now=now)


def test_relay_without_faults_forwards_bytes_and_ends_in_order() -> None:
    relay = started()
    relay.received(TO_SERVER, b"ask", 0.0)
    assert relay.act(0.0) == [Send(TO_SERVER, b"ask")]
    relay.received(TO_CLIENT, b"one", 1.0)
    relay.received(TO_CLIENT, b"two", 1.0)
    assert relay.act(1.0) == [Send(TO_CLIENT, b"one"), Send(TO_CLIENT, b"two")]
    assert relay.wake_at() is None
    relay.ended(TO_SERVER, 2.0)
    assert relay.act(2.0) == [Finish(TO_SERVER)]
    relay.ended(TO_CLIENT, 3.0)
    assert relay.act(3.0) == [Finish(TO_CLIENT), Close()]
    assert relay.over
    assert relay.act(4.0) == []


def test_cut_after_bytes_is_exact_and_final() -> None:
    relay = started(Cut(after_bytes=5))
    relay.received(TO_SERVER, b"a long request", 0.0)
    assert relay.act(0.0) == [Send(TO_SERVER, b"a long request")]
    relay.received(TO_CLIENT, b"123", 0.0)
    relay.received(TO_CLIENT, b"456", 0.0)
    assert relay.act(0.0) == [Send(TO_CLIENT, b"123"), Send(TO_CLIENT, b"45"), Close()]
    relay.received(TO_CLIENT, b"789", 1.0)
    assert relay.act(1.0) == []


def test_fault_after_bytes_happens_at_last_byte() -> None:
    relay = started(Cut(after_bytes=3))
    relay.received(TO_CLIENT, b"123", 0.0)
    assert relay.act(0.0) == [Send(TO_CLIENT, b"123"), Close()]


def test_cut_after_zero_bytes_is_immediate() -> None:
    assert started(Cut(after_bytes=0)).act(0.0) == [Close()]
    assert started(Cut()).act(0.0) == [Close()]
    assert started(Reset()).act(0.0) == [Close(by_reset=True)]


def test_bytes_count_from_injection_of_fault() -> None:
    relay = started()
    relay.received(TO_CLIENT, b"before", 0.0)
    relay.act(0.0)
    relay.inject(Cut(after_bytes=2), 1.0)
    relay.received(TO_CLIENT, b"after", 1.0)
    assert relay.act(1.0) == [Send(TO_CLIENT, b"af"), Close()]
    assert relay.passed(TO_CLIENT) == 8


def test_fault_by_time_is_on_time_despite_late_driver() -> None:
    relay = started(Cut(after=2.0), Delay(seconds=1.5))
    relay.received(TO_CLIENT, b"early", 0.0)
    relay.received(TO_CLIENT, b"late", 1.0)
    assert relay.wake_at() == 1.5
    assert relay.act(9.0) == [Send(TO_CLIENT, b"early"), Close()]


def test_stall_delays_bytes_and_end_of_one_direction() -> None:
    relay = started(Stall(duration=10.0))
    relay.received(TO_CLIENT, b"held", 1.0)
    relay.ended(TO_CLIENT, 1.0)
    relay.received(TO_SERVER, b"goes", 1.0)
    assert relay.act(1.0) == [Send(TO_SERVER, b"goes")]
    assert relay.wake_at() == 10.0
    assert relay.act(10.0) == [Send(TO_CLIENT, b"held"), Finish(TO_CLIENT)]


def test_endless_stall_ends_by_clear_or_without_peers() -> None:
    relay = started(Stall())
    relay.received(TO_CLIENT, b"held", 0.0)
    assert relay.act(0.0) == []
    assert relay.wake_at() is None
    relay.clear(5.0)
    assert relay.act(5.0) == [Send(TO_CLIENT, b"held")]
    relay.inject(Stall(), 6.0)
    relay.received(TO_CLIENT, b"never", 6.0)
    relay.ended(TO_CLIENT, 7.0)
    relay.ended(TO_SERVER, 7.0)
    assert relay.act(7.0) == [Finish(TO_SERVER), Close()]


def test_clear_sends_delayed_bytes() -> None:
    relay = started(Delay(seconds=100.0))
    relay.received(TO_CLIENT, b"late", 0.0)
    relay.ended(TO_CLIENT, 0.0)
    assert relay.act(1.0) == []
    relay.clear(1.0)
    assert relay.act(1.0) == [Send(TO_CLIENT, b"late"), Finish(TO_CLIENT)]


def test_stall_stops_reading_with_full_buffer() -> None:
    relay = started(Stall())
    relay.act(0.0)
    relay.received(TO_CLIENT, b"x" * (BUFFER_LIMIT - 1), 0.0)
    assert relay.reads(TO_CLIENT)
    relay.received(TO_CLIENT, b"x", 0.0)
    assert not relay.reads(TO_CLIENT)
    assert relay.reads(TO_SERVER)
    relay.clear(1.0)
    relay.act(1.0)
    assert relay.reads(TO_CLIENT)


def test_half_open_drops_bytes_silently() -> None:
    relay = started(HalfOpen(after_bytes=2))
    relay.received(TO_CLIENT, b"1234", 0.0)
    assert relay.act(0.0) == [Send(TO_CLIENT, b"12")]
    relay.received(TO_SERVER, b"lost", 1.0)
    relay.ended(TO_SERVER, 1.0)
    assert relay.act(1.0) == []
    assert relay.wake_at() is None
    assert relay.reads(TO_CLIENT)
    relay.lost(TO_CLIENT, 2.0)
    assert relay.act(2.0) == [Close()]


def test_lost_peer_resets_other_peer() -> None:
    relay = started()
    relay.lost(TO_SERVER, 1.0)
    assert relay.act(1.0) == [Close(by_reset=True)]


def test_delay_keeps_order_and_earlier_bytes() -> None:
    relay = started()
    relay.inject(Delay(seconds=3.0, after=1.0), 0.0)
    relay.received(TO_CLIENT, b"at once", 0.5)
    assert sent(relay.act(0.5)) == b"at once"
    relay.received(TO_CLIENT, b"one", 2.0)
    relay.received(TO_CLIENT, b"two", 2.5)
    relay.ended(TO_CLIENT, 3.0)
    assert relay.act(4.9) == []
    assert relay.act(5.0) == [Send(TO_CLIENT, b"one")]
    assert relay.act(5.5) == [Send(TO_CLIENT, b"two")]
    assert relay.wake_at() == 6.0
    assert relay.act(6.0) == [Finish(TO_CLIENT)]


def test_throttle_sends_at_specified_rate() -> None:
    relay = started(Throttle(bytes_per_second=100))
    relay.received(TO_CLIENT, b"x" * 250, 0.0)
    assert len(sent(relay.act(0.0))) == 5
    assert len(sent(relay.act(1.0))) == pytest.approx(100, abs=5)
    assert len(sent(relay.act(9.0))) == 250 - relay_so_far(1.0)


def relay_so_far(seconds: float) -> int:
    relay = started(Throttle(bytes_per_second=100))
    relay.received(TO_CLIENT, b"x" * 250, 0.0)
    return len(sent(relay.act(seconds)))


def test_corrupt_flips_specified_bytes() -> None:
    relay = started(Corrupt(after_bytes=2, count=3, mask=0xFF))
    relay.received(TO_CLIENT, b"abc", 0.0)
    relay.received(TO_CLIENT, b"defg", 0.0)
    assert sent(relay.act(0.0)) == b"ab" + bytes(byte ^ 0xFF for byte in b"cde") + b"fg"


def test_two_faults_on_one_connection_are_independent() -> None:
    relay = started(Corrupt(after_bytes=1), Cut(after_bytes=3))
    relay.received(TO_CLIENT, b"aaaa", 0.0)
    acts = relay.act(0.0)
    assert sent(acts) == b"a" + bytes([ord("a") ^ 1]) + b"a"
    assert acts[-1] == Close()


def test_bytes_after_end_raise_error() -> None:
    relay = started()
    relay.ended(TO_CLIENT, 0.0)
    with pytest.raises(RuntimeError):
        relay.received(TO_CLIENT, b"x", 0.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cut(after=1.0, after_bytes=1),
        lambda: Cut(after=-1.0),
        lambda: Stall(duration=-1.0),
        lambda: Delay(seconds=-1.0),
        lambda: Delay(seconds=math.inf),
        lambda: Throttle(bytes_per_second=0),
        lambda: Corrupt(count=0),
        lambda: Corrupt(mask=256),
    ],
)
def test_invalid_faults_are_rejected(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError):
        make()


class Relaying(RuleBasedStateMachine):
    """Whatever happens: each direction is a prefix of what was sent (some bits flipped), and nothing comes twice."""

    make = RelayMachine

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.relay = self.make(now=0.0)
        self.given = dict.fromkeys(Direction, b"")
        self.got = dict.fromkeys(Direction, b"")
        self.ended: set[Direction] = set()
        self.finished: set[Direction] = set()
        self.harmed = False
        self.closed = False

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 7.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(direction=st.sampled_from(Direction), size=st.integers(1, 40))
    def receive(self, direction: Direction, size: int) -> None:
        if direction in self.ended:
            return
        start = len(self.given[direction])
        data = bytes((start + index) % 251 for index in range(size))
        self.given[direction] += data
        self.relay.received(direction, data, self.now)

    @rule(direction=st.sampled_from(Direction))
    def end(self, direction: Direction) -> None:
        if direction not in self.ended:
            self.ended.add(direction)
            self.relay.ended(direction, self.now)

    @rule(
        fault=st.one_of(
            st.builds(Delay, seconds=st.sampled_from([0.0, 1.0])),
            st.builds(Throttle, bytes_per_second=st.sampled_from([1.0, 30.0])),
            st.builds(Stall, duration=st.sampled_from([None, 2.0]), direction=st.sampled_from(Direction)),
            st.builds(Corrupt, after_bytes=st.integers(0, 20)),
        )
    )
    def inject(self, fault: RelayFault) -> None:
        self.harmed = self.harmed or isinstance(fault, Corrupt)
        self.relay.inject(fault, self.now)

    @precondition(lambda self: not self.closed)
    @rule(
        fault=st.one_of(
            st.builds(Cut, after_bytes=st.integers(0, 30)),
            st.builds(Reset, after=st.sampled_from([0.0, 1.0])),
            st.builds(HalfOpen, after_bytes=st.integers(0, 30)),
        )
    )
    def end_badly(self, fault: RelayFault) -> None:
        self.relay.inject(fault, self.now)

    @rule()
    def clear(self) -> None:
        self.relay.clear(self.now)

    @rule()
    def act(self) -> None:
        for act in self.relay.act(self.now):
            assert not self.closed, "something came after the close"
            match act:
                case Send(direction, data):
                    assert data
                    assert direction not in self.finished
                    self.got[direction] += data
                case Finish(direction):
                    assert direction in self.ended
                    assert direction not in self.finished
                    self.finished.add(direction)
                case Close():
                    self.closed = True
        at = self.relay.wake_at()
        assert at is None or at > self.now, "what is due was not done"

    @invariant()
    def each_direction_is_a_prefix(self) -> None:
        for direction in Direction:
            got, given = self.got[direction], self.given[direction]
            assert len(got) <= len(given)
            assert self.relay.passed(direction) >= len(got)
            if not self.harmed:
                assert given.startswith(got) or self.swallowed(got, given)

    def swallowed(self, got: bytes, given: bytes) -> bool:
        """After a half-open time that was cleared, what is passed on has gaps, but stays in order."""
        position = 0
        for byte in got:
            position = given.find(bytes([byte]), position) + 1
            if position == 0:
                return False
        return True


class Forgetful(RelayMachine):  # type: ignore[misc]  # a seeded bug may derive from a final class
    """A seeded bug: what a stall held is passed on again when it is cleared."""

    def clear(self, now: float) -> None:
        for line in self._lines.values():
            line.waiting.extend(list(line.waiting))
        super().clear(now)


def run(make: type[RelayMachine]) -> None:
    machine = type("Machine", (Relaying,), {"make": make})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(60), stateful_step_count=25, derandomize=True)
    )


def test_relay_keeps_order_without_duplicates() -> None:
    run(RelayMachine)


@pytest.mark.nightly
def test_machine_detects_relay_with_duplicates() -> None:
    with pytest.raises(AssertionError):
        run(Forgetful)
