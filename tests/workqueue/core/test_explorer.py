"""Everything that can happen to a rate limiting queue with two items, compared with the model, state by state.

The explorer goes breadth first through all sequences of calls, and does not go on from a state that it has seen. A
state is what decides about the future: the line in order, what is processed, postponed, delayed (by how long) and
parked, the counts of failures, and the shutdown. Each sequence is run from the beginning, on the core and on the model,
which have to agree after each step. So the first disagreement found has the shortest trace there is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

import pytest

from deltaloop.workqueue.core.facts import Ending, Failed, Interrupted, Succeeded
from deltaloop.workqueue.core.queue import Run
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from deltaloop.workqueue.errors import TerminalError

ITEMS = ("a", "b")
MAX_REQUEUES = 1
Step: TypeAlias = tuple[str, str]
ERROR, FATAL = KeyError("x"), TerminalError("x")


class OneSecond:
    """Lets each item wait for a second."""

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:
        return 1.0

    def forget(self, item: Hashable) -> None:
        """Remember nothing."""

    def num_requeues(self, item: Hashable) -> int:
        return 0


@dataclass
class Spec:
    """What the queue should do, as sets and lists."""

    line: list[str] = field(default_factory=list[str])
    processing: list[str] = field(default_factory=list[str])
    postponed: list[str] = field(default_factory=list[str])
    due: dict[str, int] = field(default_factory=dict[str, int])
    parked: list[str] = field(default_factory=list[str])
    failures: dict[str, int] = field(default_factory=dict[str, int])
    shut: bool = False
    drain: bool = False

    def dirty(self, item: str) -> bool:
        return item in self.line or item in self.postponed

    def join(self, item: str) -> None:
        if self.dirty(item):
            return
        if item in self.parked:
            self.parked.remove(item)
        (self.postponed if item in self.processing else self.line).append(item)

    def add(self, item: str) -> None:
        if not self.shut:
            self.join(item)

    def delay(self, item: str, seconds: int) -> None:
        """Keep the earlier time; of equal ones the first that was asked for comes first."""
        if seconds < self.due.get(item, 3):
            self.due.pop(item, None)
            self.due[item] = seconds

    def end(self, item: str) -> None:
        self.processing.remove(item)
        if item in self.postponed:
            self.postponed.remove(item)
            self.line.append(item)

    def fail(self, item: str, *, fatal: bool) -> None:
        failures = self.failures.get(item, 0)
        if fatal or failures >= MAX_REQUEUES:
            if not self.dirty(item):
                self.parked.append(item)
            self.failures.pop(item, None)
        elif self.dirty(item):
            self.failures[item] = failures + 1
        elif not self.shut:
            self.failures[item] = failures + 1
            self.delay(item, 1)
        self.end(item)

    def step(self, what: str, item: str) -> None:
        match what:
            case "add":
                self.add(item)
            case "add_after":
                if not self.shut:
                    self.delay(item, 2)
            case "second":
                self.due = {item: left - 1 for item, left in self.due.items()}
                for item in [item for item, left in self.due.items() if not left]:
                    del self.due[item]
                    self.join(item)
            case "get":
                self.processing.append(self.line.pop(0))
            case "succeed":
                self.failures.pop(item, None)
                self.end(item)
            case "fail" | "fail for good":
                self.fail(item, fatal=what != "fail")
            case "interrupt":
                self.add(item)
                self.end(item)
            case "done":
                self.end(item)
            case "retry_dead_letter":
                self.add(item)
            case "discard":
                self.parked.remove(item)
            case _:
                self.shut, self.drain = True, what == "drain"
                self.due.clear()

    def possible(self) -> list[Step]:
        steps = [(what, item) for what in ("add", "add_after") for item in ITEMS]
        steps += [
            (what, item)
            for what in ("succeed", "fail", "fail for good", "interrupt", "done")
            for item in self.processing
        ]
        steps += [(what, item) for what in ("retry_dead_letter", "discard") for item in self.parked]
        steps += [("get", "")] if self.line else []
        steps += [("second", "")] if self.due else []
        return steps + ([] if self.shut and not self.drain else [("shut_down", ""), ("drain", "")])

    def state(self) -> Hashable:
        lists = (tuple(self.line), tuple(self.processing), tuple(self.postponed), tuple(self.parked))
        return (*lists, tuple(self.due.items()), frozenset(self.failures.items()), self.shut, self.drain)


class Pair:
    """The core and the specification, step by step."""

    def __init__(self, core_type: type[RateLimitingCore[str]]) -> None:
        self.core = core_type(limiter=OneSecond(), max_requeues=MAX_REQUEUES)
        self.spec = Spec()
        self.now = 0.0
        self.runs: dict[str, Run[str]] = {}
        self.ended: list[Run[str]] = []

    def step(self, what: str, item: str) -> None:
        self.spec.step(what, item)
        core, now = self.core, self.now
        endings: dict[str, Ending] = {
            "succeed": Succeeded(),
            "fail": Failed(ERROR),
            "fail for good": Failed(FATAL),
            "interrupt": Interrupted(),
        }
        if what in endings:
            core.finish(self.runs.pop(item), now, endings[what])
        elif what == "done":
            self.ended.append(self.runs.pop(item))
            if not core.done_at_once(item):
                core.done(item, now)
        elif what == "get":
            run = core.get(now)
            assert run is not None
            self.runs[run.item] = run
        elif what == "second":
            self.now += 1.0
            core.promote(self.now)
        elif what in ("shut_down", "drain"):
            core.shut_down(drain=what == "drain")
        else:
            calls: dict[str, Callable[[], object]] = {
                "add": lambda: core.add(item, now),
                "add_after": lambda: core.add_after(item, now, 2.0),
                "retry_dead_letter": lambda: core.retry_dead_letter(item, now),
                "discard": lambda: core.discard_dead_letter(item),
            }
            calls[what]()

    def agree(self) -> None:
        core, spec = self.core, self.spec
        assert len(core) == len(spec.line)
        assert [run.item for run in core.runs()] == spec.processing
        assert all(run.over for run in self.ended)
        assert {item for item in core._dirty if item in core._processing} == set(spec.postponed)
        assert {delay.item: delay.due_at - self.now for delay in core.delayed()} == spec.due
        assert [letter.item for letter in core.dead_letters()] == spec.parked
        assert core._failures == spec.failures
        assert core.ended == (spec.shut and not spec.line and not spec.postponed)
        waited_for = spec.line or spec.postponed or spec.processing
        assert core.drain_over == (not spec.drain or not waited_for)


def explore(core_type: type[RateLimitingCore[str]]) -> int:
    """Compare in all states; return how many there are."""
    seen: set[Hashable] = {Spec().state()}
    traces: deque[tuple[Step, ...]] = deque([()])
    while traces:
        trace = traces.popleft()
        before = Pair(core_type)
        for step in trace:
            before.step(*step)
        for step in before.spec.possible():
            pair = Pair(core_type)
            for earlier in (*trace, step):
                pair.step(*earlier)
            try:
                pair.agree()
            except AssertionError as error:
                error.add_note(f"trace: {[*trace, step]}")
                raise
            if pair.spec.state() not in seen:
                seen.add(pair.spec.state())
                traces.append((*trace, step))
    return len(seen)


@pytest.mark.nightly
@pytest.mark.slow
def test_core_satisfies_invariants_in_all_states_of_two_items() -> None:
    assert explore(RateLimitingCore[str]) > 1000


# -- seeded bugs, each found by its shortest trace
