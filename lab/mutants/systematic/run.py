"""Runs the mutants of a room against its tests."""

from __future__ import annotations

import gc
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import pytest

from lab.mutants.systematic.instrument import Room
from lab.mutants.systematic.mutant import Mutant, mutants
from lab.mutants.systematic.worker import (
    Covered,
    InChild,
    Swapper,
    Tests,
    Verdict,
    limit,
    measure,
    try_tests,
)

# No shrinking: that a test fails is all that is asked. No chance: the same run finds the same again.
_PYTEST = ("-p", "no:xdist", "-p", "no:cacheprovider", "-q", "--no-header", "--capture=no", "--assert=plain")
_ANEW = ("-W", "ignore::pytest.PytestAssertRewriteWarning")


@dataclass
class Plan:
    """What is run: the modules, the tests, and how many mutants of each module.

    Attributes:
        sample: mutants in all, shared out among the modules by their number; none: every one.
        seed: of the sample.
        wanted: says which mutants are looked at at all.
        seconds: after which no further mutant is begun.
        budget: seconds of computing that the tests of one mutant may need, the fastest first; none: all of them run.
    """

    room: Room
    tests: Sequence[str]
    sample: int | None = None
    seed: int = 1
    workers: int = 1
    wanted: Callable[[Mutant], bool] = lambda _: True
    seconds: float | None = None
    budget: float | None = None
    say: Callable[[str], None] = print


@dataclass
class Result:
    """All mutants that were tried, and how each fared."""

    seeded: dict[str, int] = field(default_factory=dict[str, int])
    verdicts: dict[Mutant, Verdict] = field(default_factory=dict[Mutant, Verdict])
    failing: list[str] = field(default_factory=list[str])
    tests: int = 0
    untried: int = 0


def sampled(plan: Plan) -> tuple[list[Mutant], dict[str, int]]:
    """The mutants of a run, and how many there are of each module."""
    found = {
        module: [each for each in mutants(module, tree) if plan.wanted(each)]
        for module, tree in plan.room.trees.items()
    }
    total = sum(map(len, found.values()))
    chosen: list[Mutant] = []
    for module, each in found.items():
        if plan.sample is None or total <= plan.sample:
            chosen += each
            continue
        share = min(len(each), -(-plan.sample * len(each) // total))
        numbers = random.Random(f"{plan.seed} {module}").sample(range(len(each)), share)
        chosen += [each[number] for number in sorted(numbers)]
    return chosen, {module: len(each) for module, each in found.items()}


def run(plan: Plan) -> Result:
    """Collect the tests, measure what they cover, and try every mutant of the plan."""
    plan.room.install()
    scratch = Path(tempfile.mkdtemp(prefix="mutants-"))
    session = _Session(plan, scratch)
    try:
        status = pytest.main([*_PYTEST, *plan.tests], plugins=[session])
        if session.result is None:
            raise RuntimeError(f"pytest collected nothing to run: {status!r}")
        return session.result
    finally:
        if os.getpid() == session.pid:
            shutil.rmtree(scratch, ignore_errors=True)


def _steady_hypothesis() -> None:
    from hypothesis import Phase, settings  # before any test module is imported

    settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], database=None, derandomize=True)
    settings.load_profile("mutants")


class _Session:
    """A pytest plugin that runs mutants where pytest would run tests."""

    def __init__(self, plan: Plan, scratch: Path) -> None:
        self.plan, self.scratch, self.pid = plan, scratch, os.getpid()
        self.result: Result | None = None

    def pytest_configure(self) -> None:
        _steady_hypothesis()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        plan, result = self.plan, Result()
        if session.testsfailed or not session.items:
            raise session.Failed(f"{session.testsfailed} errors during collection, {len(session.items)} tests")
        tests = Tests({item.nodeid: item for item in session.items}, bytes(plan.room.ran))
        swapper = Swapper(plan.room)
        gc.collect()
        gc.freeze()
        begun = time.monotonic()
        measure(plan.room, tests, self.scratch)
        result.tests = len(tests.items)
        result.failing = [each.test for each in tests.covered.values() if not each.passed]
        plan.say(f"{result.tests} tests measured in {time.monotonic() - begun:.0f} s; failing: {result.failing}")
        chosen, result.seeded = sampled(plan)
        _Trial(plan, tests, swapper, self.scratch).run(chosen, result)
        self.result = result
        return True


@dataclass
class _Running:
    mutant: Mutant
    order: list[Covered]
    child: InChild
    confirms: Verdict | None = None
    cleared: tuple[str, ...] = ()
    at: int = -1
    deadline: float = 0.0


class _Trial:
    def __init__(self, plan: Plan, tests: Tests, swapper: Swapper, scratch: Path) -> None:
        self.plan, self.tests, self.swapper, self.scratch = plan, tests, swapper, scratch
        self.running: list[_Running] = []

    def run(self, chosen: list[Mutant], result: Result) -> None:
        begun = told = time.monotonic()
        waiting = list(reversed(chosen))
        while waiting or self.running:
            late = self.plan.seconds is not None and time.monotonic() - begun > self.plan.seconds
            while waiting and not late and len(self.running) < self.plan.workers:
                mutant = waiting.pop()
                order = self._within_budget(self.tests.of(self.plan.room, mutant))
                if not order:
                    result.verdicts[mutant] = Verdict(how="no test runs it")
                    continue
                self.running.append(self._start(mutant, order))
            if late and not self.running:
                result.untried = len(waiting)
                break
            if self.running:
                self._step(result)
            if time.monotonic() - told > 30:
                told = time.monotonic()
                survived = sum(each.killed is None for each in result.verdicts.values())
                self.plan.say(f"{len(result.verdicts)} of {len(chosen)} tried, {survived} survive")

    def _within_budget(self, order: list[Covered]) -> list[Covered]:
        if self.plan.budget is None:
            return order
        spent = accumulate(each.computing for each in order)
        return [each for each, seconds in zip(order, spent, strict=True) if seconds <= self.plan.budget] or order[:1]

    def _start(
        self, mutant: Mutant, order: list[Covered], confirms: Verdict | None = None, cleared: tuple[str, ...] = ()
    ) -> _Running:
        def work(say: Callable[[str], None]) -> None:
            if self.swapper.swap(mutant) and not self._ran_at_import(mutant):
                try_tests(order, self.tests.items, say, self.scratch)
            else:
                self._anew(mutant, order, say)

        running = _Running(mutant, order, InChild(work), confirms, cleared)
        running.deadline = time.monotonic() + 60
        return running

    def _ran_at_import(self, mutant: Mutant) -> bool:
        return mutant.statement is not None and bool(
            self.tests.at_import[self.plan.room.numbers[mutant.module, mutant.statement]]
        )

    def _anew(self, mutant: Mutant, order: list[Covered], say: Callable[[str], None]) -> None:
        """Import the package again, with the mutant in it, and collect the tests' files again."""
        room = self.plan.room
        room.mutant = mutant
        files = {str(item.path) for item in self.tests.items.values()}
        for name, there in [*sys.modules.items()]:
            of_the_package = name == room.package or name.startswith(f"{room.package}.")
            of_the_tests = name.startswith("tests.") or getattr(there, "__file__", None) in files
            if of_the_package or (of_the_tests and not _is_ours(name)):
                del sys.modules[name]
        try:
            _collect_anew(order, lambda items: try_tests(order, items, say, self.scratch))
        except _CollectionError as error:
            say(f"failed 0 {str(error)[:200]!r}")

    def _step(self, result: Result) -> None:
        now = time.monotonic()
        timeout = max(0.0, min(each.deadline for each in self.running) - now)
        ready, _, _ = select.select([each.child.pipe for each in self.running], [], [], timeout)
        for each in [*self.running]:
            ended = False
            if each.child.pipe in ready:
                chunk = os.read(each.child.pipe, 65536)
                each.child.text += chunk
                ended = not chunk or each.child.has_said()
                self._note_test(each)
            hung = not ended and time.monotonic() > each.deadline
            if ended or hung:
                self.running.remove(each)
                self._judge(each, hung, result)

    def _note_test(self, running: _Running) -> None:
        for line in running.child.lines():
            if line.startswith("test "):
                index = int(line.split()[1])
                if index > running.at:
                    running.at = index
                    running.deadline = time.monotonic() + limit(running.order[index])

    def _judge(self, running: _Running, hung: bool, result: Result) -> None:
        status = running.child.end()
        last = (running.child.lines() or ["?"])[-1]
        seconds = time.monotonic() - running.child.started_at
        verdict = Verdict(tests=running.at + 1, seconds=seconds)
        if last.startswith("broken"):
            verdict.killed, verdict.how = "(none)", last
        elif last != "survived":
            index = max(running.at, 0)
            verdict.killed = running.order[index].test
            verdict.how = (
                "hangs" if hung else last.split(" ", 2)[2] if last.startswith("failed") else f"ended: {status}"
            )
        if running.confirms is not None and verdict.killed is None:
            self._go_on(running, result)
        elif running.confirms is None and verdict.killed is not None and self._by_chance(verdict, hung):
            again = [each for each in running.order if each.test == verdict.killed]
            self.running.append(self._start(running.mutant, again, verdict, running.cleared))
        else:
            verdict = running.confirms or verdict
            result.verdicts[running.mutant] = verdict
            if verdict.killed:
                self.tests.note(running.mutant, verdict.killed)
            else:
                self.plan.say(f"survives {verdict.tests} tests: {running.mutant}")

    def _go_on(self, running: _Running, result: Result) -> None:
        """A test failed once, and not again: the others have to tell."""
        cleared = (*running.cleared, running.order[0].test)
        rest = [each for each in self.tests.of(self.plan.room, running.mutant) if each.test not in cleared]
        if rest:
            self.running.append(self._start(running.mutant, rest, None, cleared))
        else:
            result.verdicts[running.mutant] = Verdict(how="failed once, and not again")

    def _by_chance(self, verdict: Verdict, hung: bool) -> bool:
        """Whether the test that killed it depends on the clock, so that it has to do it twice."""
        item = self.tests.items.get(verdict.killed or "")
        return item is not None and (hung or item.get_closest_marker("real_time") is not None)


def _is_ours(name: str) -> bool:
    return name.startswith("lab.mutants.systematic") or name in ("tests", "lab.mutants")


def _collect_anew(order: Sequence[Covered], then: Callable[[dict[str, pytest.Item]], None]) -> None:
    """Collect the same tests, of modules that are imported again, and go on with them."""
    files = dict.fromkeys(each.test.split("::", 1)[0] for each in order)
    collected = False

    class Collector:
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            nonlocal collected
            if session.testsfailed:
                raise session.Failed("errors during collection")
            collected = True
            then({item.nodeid: item for item in session.items})
            return True

    signal.setitimer(signal.ITIMER_PROF, 60)
    status = pytest.main([*_PYTEST, *_ANEW, *files], plugins=[Collector()])
    if not collected:
        raise _CollectionError(f"not collected: {status!r}")


class _CollectionError(Exception):
    """Tests could not be collected: the mistake shows when its module is imported."""
