"""Faults as a state machine beside a naive model; seeded bugs are found by the same machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from deltaloop.apiserver.core.fault_rules import Fault, FaultBook, Strike, WatchFate, WatchTrouble
from deltaloop.apiserver.core.wire.request_info import RequestInfo, describe
from tests.nightly import examples

PATHS = ("/api/v1/namespaces/a/configmaps", "/api/v1/namespaces/a/configmaps/x", "/version")
SETTINGS = settings(
    max_examples=examples(25),
    stateful_step_count=20,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def requested(path: str, *, watch: bool) -> RequestInfo:
    return describe("GET", path, tuple(path.strip("/").split("/")), {"watch": "1"} if watch else {})


@dataclass
class Kept:
    """What the model knows of one fault."""

    number: int
    fault: Fault
    to_pass: int
    to_strike: int | None
    struck: int = 0


def faults() -> st.SearchStrategy[Fault]:
    return st.builds(
        Fault,
        do=st.sampled_from(["refuse", "delay", "drop", "stale", "cut", "stall"]),
        verbs=st.sampled_from([(), ("get",), ("list", "watch")]),
        users=st.sampled_from([(), ("me",)]),
        count=st.sampled_from([None, 1, 2]),
        after=st.sampled_from([0, 0, 1, 2]),
        probability=st.sampled_from([1.0, 0.5, 0.0]),
        seconds=st.sampled_from([0.0, 1.0, 2.5]),
    )


def make_machine(new_book: Callable[[], Any]) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.book = new_book()
            self.kept: list[Kept] = []
            self.last = 0

        @rule(fault=faults())
        def add(self, fault: Fault) -> None:
            number: int = self.book.add(fault)
            assert number > self.last, "a number is given once"
            self.last = number
            self.kept.append(Kept(number, fault, fault.after, fault.count))

        @rule(number=st.integers(1, 6))
        def remove(self, number: int) -> None:
            known = [kept for kept in self.kept if kept.number == number]
            assert self.book.remove(number) is bool(known)
            self.kept = [kept for kept in self.kept if kept.number != number]

        @rule()
        def clear(self) -> None:
            self.book.clear()
            self.kept = []

        @rule(
            path=st.sampled_from(PATHS),
            watch=st.booleans(),
            user=st.sampled_from(["me", "you"]),
            random=st.sampled_from([0.0, 0.49, 0.5, 0.99]),
        )
        def request(self, path: str, watch: bool, user: str, random: float) -> None:
            info = requested(path, watch=watch)
            drawn: list[float] = []

            def draw() -> float:
                drawn.append(random)
                return random

            delay, fault = 0.0, None
            chances = 0
            for kept in list(self.kept):
                one = kept.fault
                if not self.strikes(one, info, user) or (fault is not None and one.do != "delay"):
                    continue
                if kept.to_pass:
                    kept.to_pass -= 1
                    continue
                if one.probability < 1:
                    chances += 1
                    if random >= one.probability:
                        continue
                kept.struck += 1
                if kept.to_strike is not None:
                    kept.to_strike -= 1
                    if not kept.to_strike:
                        self.kept.remove(kept)
                if one.do == "delay":
                    delay += one.seconds
                else:
                    fault = one
            assert self.book.strike(info, user=user, draw=draw) == Strike(delay, fault)
            assert len(drawn) == chances

        def strikes(self, fault: Fault, info: RequestInfo, user: str) -> bool:
            if fault.do in ("cut", "stall") and info.verb != "watch":
                return False
            if fault.do == "stale" and info.resource is None:
                return False
            return (not fault.verbs or info.verb in fault.verbs) and (not fault.users or user in fault.users)

        @invariant()
        def lists_what_is_on(self) -> None:
            assert self.book.active() == tuple((kept.number, kept.fault, kept.struck) for kept in self.kept)

    return Machine


def test_fault_book_matches_the_model() -> None:
    run_state_machine_as_test(make_machine(FaultBook), settings=SETTINGS)


def history_of(trouble: Any) -> list[WatchFate]:
    """Ask an open watch for its fate through two faults: each with events to come first, the second one a stall."""
    seen: list[WatchFate] = []
    trouble.order(Fault(do="cut", events=2))
    for _ in range(3):
        seen.append(trouble.fate(0.0))
        trouble.sent()
    trouble.order(Fault(do="stall", events=1, seconds=10.0))
    seen.append(trouble.fate(1.0))
    trouble.sent()
    seen += [trouble.fate(now) for now in (2.0, 11.9, 12.0, 30.0)]
    trouble.order(Fault(do="stall"))
    seen += [trouble.fate(40.0), trouble.fate(1e9)]
    trouble.lift()
    return [*seen, trouble.fate(1e9)]


HISTORY = [
    WatchFate.SEND,
    WatchFate.SEND,
    WatchFate.CUT,
    WatchFate.SEND,
    WatchFate.WAIT,
    WatchFate.WAIT,
    WatchFate.SEND,
    WatchFate.SEND,
    *[WatchFate.WAIT] * 2,
]


def test_open_watch_follows_the_last_order() -> None:
    assert history_of(WatchTrouble()) == [*HISTORY, WatchFate.SEND]
