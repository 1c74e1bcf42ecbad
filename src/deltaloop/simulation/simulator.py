"""Simulator that runs a scenario repeatedly with different faults, and compares the end states."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import hashlib
import random
import sys
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api import kinds
from deltaloop.api.errors import MissingExtraError, UnknownResourceError
from deltaloop.api.json_values import mapping, text
from deltaloop.api.redaction import REDACTED, redact
from deltaloop.api.resource import Resource
from deltaloop.api.status import NotFoundError
from deltaloop.api.times import from_epoch
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.apiserver.embedding import StoreState
from deltaloop.runtime import Controller, Permission
from deltaloop.runtime.sources import Watch
from deltaloop.simulation.core.claims import EarlyClaim, ReadyClaims, early_claims
from deltaloop.simulation.core.end_states import (
    DrawnNames,
    EndState,
    Place,
    drawn_names,
    end_state,
    learnt,
    without_drawn_names,
)
from deltaloop.simulation.core.guided_search import GuidedSearch
from deltaloop.simulation.core.oracles import Problem, SimulationRun, problems_of
from deltaloop.simulation.core.reports import Failure, Findings, SimulationReport
from deltaloop.simulation.core.schedules import (
    AGEING,
    ALL_KINDS,
    Kind,
    Pasts,
    Schedule,
    ScheduledFault,
    ScheduledOrder,
    combining,
    in_question,
    later_crashes,
    shorter,
    systematic,
)
from deltaloop.simulation.determinism import deterministic, quiet
from deltaloop.simulation.nondeterminism import detect_nondeterminism
from deltaloop.simulation.ordered_tasks import ordered_tasks
from deltaloop.testing.deterministic_loop.memory_network import MemoryNetwork
from deltaloop.testing.deterministic_loop.thread_turns import thread_turns
from deltaloop.testing.deterministic_loop.virtual_loop import StalledError, VirtualLoop, run_virtual
from deltaloop.testing.harness import Harness, running_harness, state_of
from deltaloop.testing.injected_faults.core.program_writes import LASTS, PlannedFault, ProgramWrite, WriteName
from deltaloop.testing.programs.core.settling import NotSettledError
from deltaloop.testing.programs.harness_state import HarnessState
from deltaloop.testing.servers.cluster import default_server_options

Scenario: TypeAlias = Callable[[Harness], Awaitable[object]]

_SEED_OF_FIRST_OBJECTS: Final = 0
_prepared: Final[dict[object, StoreState]] = {}
_EPOCH: Final = 1_767_225_600.0  # 2026-01-01T00:00:00Z
_SETTLES_WITHIN: Final = 600.0
_LEARNING: Final = 2
# Fixed port of the server in each run's own network, so that objects that contain it can be created once.
_PORT: Final = 6443
_MOST_FAILURES: Final = 5
_SHORTEST_SECRET: Final = 4
_YOUNGEST: Final = 0
_MOST_GARBAGE: Final = 500_000  # objects; an ordinary run creates some thousands


class SimulationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a simulation.

    Attributes:
        seed: Random seed for the runs and the selection of fault combinations.
        runs: Maximum number of runs, including those without faults.
        seconds: Seconds of real time after which no more runs start. None means no limit.
        combinations: Whether runs with two and three faults follow those with one fault.
        faults: Kinds of faults to try. ``premature`` and task orders are not combined on their own.
        max_failures: Number of different failures after which the search ends.
        server: Options of the embedded server. None means those of the pytest plugin.
        may_differ: Places of the end state that may differ from the run without faults. A place is the kind, the key,
            and the path to a field, for example ``("v1/Secret", "default/token", "data")``.
    """

    seed: int = 0
    runs: int = 1000
    seconds: float | None = None
    combinations: bool = True
    faults: tuple[Kind, ...] = ALL_KINDS
    max_failures: int = _MOST_FAILURES
    server: ServerOptions | None = None
    may_differ: tuple[Place, ...] = ()


class SimulationFailedError(DeltaloopError, AssertionError):
    """A scenario fails with some schedule.

    The message contains the report.

    Attributes:
        report: Report of the simulation.
    """

    def __init__(self, report: SimulationReport) -> None:
        super().__init__(str(report))
        self.report = report


class BrokenReferenceError(DeltaloopError):
    """The run without faults fails, so comparisons are not possible.

    Attributes:
        problem: First problem of the run.
    """

    def __init__(self, problem: Problem, *, seed: int) -> None:
        again = "Repeat it with its log: deltaloop simulate --replay '', or Simulation.run()."
        super().__init__(f"the scenario fails without faults, with seed {seed}: {problem}. {again}")
        self.problem = problem


@final
class Simulation:
    """Simulation of one scenario."""

    def __init__(self, scenario: Scenario, options: SimulationOptions | None = None) -> None:
        """Create a simulation without starting a run.

        Args:
            scenario: Async function that is written like a test. It must not keep state between runs.
            options: Seed and budget.
        """
        self._scenario = scenario
        self._options = options or SimulationOptions()
        server = self._options.server or default_server_options()
        self._server = replace(server, port=server.port or _PORT)
        self._runs = 0
        self._reference: SimulationRun | None = None
        self._found: Findings | None = None
        self._ignored: frozenset[Place] = frozenset(self._options.may_differ)
        self._drawn: DrawnNames = frozenset()
        self._has_learnt = False

    @property
    def reference(self) -> SimulationRun:
        """Run without faults.

        Raises:
            BrokenReferenceError: If the run fails.
        """
        if self._reference is None:
            self._reference = self._without_faults(self._options.seed)
        return self._reference

    def _learn(self) -> None:
        """Learn the differences between runs without faults with other seeds."""
        if self._has_learnt:
            return
        others = [self._without_faults(self._options.seed + number) for number in range(1, 1 + _LEARNING)]
        states = [run.end for run in (self.reference, *others) if run.end is not None]
        self._drawn = drawn_names(states)
        self._ignored |= learnt([without_drawn_names(state, self._drawn) for state in states])
        self._has_learnt = True

    def run(self, schedule: Schedule = (), *, seed: int | None = None) -> SimulationRun:
        """Run the scenario once.

        Args:
            schedule: Faults of the run.
            seed: Random seed. None means the seed of the options.
        """
        self._runs += 1
        chosen = self._options.seed if seed is None else seed
        kinds = () if self._reference is None else self._reference.kinds
        one = _Run(self._scenario, schedule, self._server, kinds)
        with _nothing_collected():
            return _elsewhere(partial(one.run, chosen))

    def judge(self, schedule: Schedule, run: SimulationRun) -> Failure | None:
        """Return the failure of a run, or None.

        Args:
            schedule: Faults of the run.
            run: Result of the run.
        """
        reference = self.reference
        problems = problems_of(reference, run, ignored=self._ignored, drawn=self._drawn)
        if problems and not self._has_learnt:
            self._learn()
            problems = problems_of(reference, run, ignored=self._ignored, drawn=self._drawn)
        seed = self._options.seed
        return Failure(schedule=schedule, problems=problems, run=run, seed=seed) if problems else None

    def replay(self, schedule: Schedule) -> Failure | None:
        """Run a schedule, and return its failure or None."""
        return self.judge(schedule, self.run(schedule))

    def explore(self, *, progress: Callable[[int, int], object] | None = None) -> SimulationReport:
        """Try schedules until the budget is used up, and return the report.

        An interruption (Ctrl-C) propagates to the caller, and ``found`` contains the results so far.

        Args:
            progress: Function called after each run with the number of runs and the number of failures.

        Raises:
            BrokenReferenceError: If the run without faults fails.
        """
        with quiet(), _nothing_collected():
            self._found = found = Findings(self.reference)
            self._learn()
            self._explore(found, progress)
            return found.report(self._runs)

    @property
    def found(self) -> SimulationReport | None:
        """Results of ``explore`` so far, even after an interruption, or None before the run without faults."""
        return None if self._found is None else self._found.report(self._runs)

    def _explore(self, found: Findings, progress: Callable[[int, int], object] | None) -> None:
        began = time.monotonic()
        names, kinds = found.writes, in_question(self._options.faults, webhooks=found.reference.webhooks)
        pasts = Pasts()
        draw = random.Random(f"combinations of {self._options.seed}").random
        search = GuidedSearch(names, draw, kinds)
        search.ran((), found.reference)
        for is_single, schedule in self._schedules(names, search, kinds, pasts):
            found.complete = not is_single
            late = self._options.seconds is not None and time.monotonic() - began >= self._options.seconds
            if late or self._runs >= self._options.runs or len(found.failures) >= self._options.max_failures:
                return
            run = self.run(schedule)
            gc.collect(_YOUNGEST)  # collect only the objects of this run
            found.ran(schedule, run)
            failure = self.judge(schedule, run)
            search.ran(schedule, run, right=failure is None)
            found.states = search.states
            pasts.ran(schedule, run.pasts)
            if failure is not None:
                found.failed(self.shrink(failure))
            if progress is not None:
                progress(self._runs, len(found.failures))
        found.complete = True

    def _without_faults(self, seed: int) -> SimulationRun:
        outcome = self.run((), seed=seed)
        problems = problems_of(outcome, outcome)
        if problems:
            raise BrokenReferenceError(problems[0], seed=seed)
        return outcome

    def _schedules(
        self, names: tuple[WriteName, ...], search: GuidedSearch, kinds: Sequence[Kind], pasts: Pasts
    ) -> Iterator[tuple[bool, Schedule]]:
        """Yield schedules, each with whether it has a single fault."""
        later = later_crashes(names, self.reference.others)
        for schedule in systematic(names, kinds, pasts, later=later):
            yield True, schedule
        while self._options.combinations and len(names) > 1 and combining(kinds):
            yield False, search.next()

    def shrink(self, failure: Failure) -> Failure:
        """Return a failure with a minimal number of faults and at least one of the same oracles."""
        oracles = {problem.oracle for problem in failure.problems}
        for schedule in shorter(failure.schedule):
            found = self.replay(schedule)
            if found is not None and oracles & {problem.oracle for problem in found.problems}:
                return self.shrink(found)
        return failure


@final
class _Run:
    def __init__(self, scenario: Scenario, schedule: Schedule, server: ServerOptions, kinds: Sequence[str]) -> None:
        self._kinds = kinds
        self._scenario = scenario
        self._schedule = schedule
        self._server = server
        self._loop: VirtualLoop | None = None
        self._state: HarnessState | None = None
        self._first_objects: StoreState | None = None
        self._result: SimulationRun | None = None

    def run(self, seed: int) -> SimulationRun:
        if "deltaloop.webhooks.declaring" in sys.modules:  # the program may serve webhooks
            from deltaloop.testing.programs.webhook_service import authority

            with suppress(MissingExtraError):
                authority()
        self._first_objects = _first_objects(self._server)
        with deterministic(seed, clock=self._time, epoch=_EPOCH), detect_nondeterminism() as found, ordered_tasks():
            try:
                run_virtual(self._live(seed), network=MemoryNetwork())
            except StalledError as error:
                self._result = self._stalled(error)
        assert self._result is not None
        return msgspec.structs.replace(self._result, nondeterminism=tuple(found.found))

    def _stalled(self, error: StalledError) -> SimulationRun:
        """Return the result of a run that waits forever. The loop raises this error, not the scenario."""
        if self._state is None:
            raise error
        writes = tuple(self._state.writes)
        return SimulationRun(
            end=None,
            writes=writes,
            steps=tuple(self._state.steps),
            raised=_without_secrets(_line_of(error), writes),
            trace=tuple(map(_line, writes)),
        )

    def _time(self) -> float:
        return 0.0 if self._loop is None else self._loop.time()  # thread-safe

    async def _live(self, seed: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        with thread_turns(loop) as loop.turns:
            # asyncio formats the result of its main task, so do not return it.
            self._result = await self._lived(seed, loop)

    async def _lived(self, seed: int, loop: VirtualLoop) -> SimulationRun:
        options = replace(self._server, wall_clock=_wall_clock(loop.time))
        unsettled = violation = raised = ""
        end: EndState | None = None
        told = False
        kinds: tuple[str, ...] = ()
        server = ApiServer(options, begins_with=self._first_objects)
        async with running_harness(server, seed=seed, direct=True) as harness:
            self._state = state = state_of(harness)
            state.settles_within = _SETTLES_WITHIN
            claims = _Claims(state)
            state.after_writes.append(claims.look)
            for fault in self._schedule:
                if isinstance(fault, ScheduledOrder):
                    loop.order = fault.task_order(random.Random(str(fault)).random)
                    continue
                state.plan.planned[fault.write] = PlannedFault(fault.kind, fault.behind, fault.changes)
            try:
                await self._scenario(harness)
                await _rested(harness)
            except NotSettledError as error:
                unsettled = "; ".join(error.left)
            except Exception as error:  # noqa: BLE001 - any exception is the result of the run
                if error is state.violation:
                    violation = _line_of(error)
                elif not state.early_steps:  # a premature step may fail because required objects are missing
                    raised = _line_of(error)
                told = True
            planned = state.to_come
            if not told:
                objects = await self._objects(harness)
                kinds, end = tuple(objects), end_state(obj for found in objects.values() for obj in found)
            writes = tuple(state.writes)
            for replica in harness.replicas:
                await replica.crash()  # a graceful shutdown, or its error, is not part of the comparison
        return SimulationRun(
            end=end,
            kinds=kinds,
            writes=writes,
            steps=tuple(state.steps),
            rests=tuple(state.rests),
            pasts=tuple(state.pasts),
            others=tuple(state.others),
            premature=state.early_steps > 0,
            unsettled=_without_secrets(unsettled, writes),
            violation=_without_secrets(violation, writes),
            raised=_without_secrets(raised, writes),
            claims=() if any(fault.kind in AGEING for fault in self._faults()) else tuple(claims.early),
            unused_faults=planned,
            webhooks=state.webhook_service is not None,
            trace=tuple(map(_line, writes)),
        )

    def _faults(self) -> list[ScheduledFault]:
        return [fault for fault in self._schedule if isinstance(fault, ScheduledFault)]

    async def _objects(self, harness: Harness) -> dict[str, list[Resource]]:
        """Return all objects of kinds that programs reconcile, declare or write, here or in the reference."""
        controllers = [controller for replica in harness.replicas for controller in replica.controllers]
        kinds = {*self._kinds} | {str(kind) for controller in controllers for kind in _declared(controller)}
        kinds |= {write.resource for write in harness.writes}
        found: dict[str, list[Resource]] = {}
        for name in sorted(kinds):
            with suppress(UnknownResourceError, NotFoundError):
                kind = str(await harness.client.resource(name))
                if kind not in found:
                    found[kind] = [*await harness.client.list_all(kind)]
        return dict(sorted(found.items()))


def _wall_clock(clock: Callable[[], float]) -> Callable[[], dt.datetime]:
    """Return the server's clock, which caches the time because most calls happen at the same moment."""
    asked, told = -1.0, from_epoch(_EPOCH)

    def now() -> dt.datetime:
        nonlocal asked, told
        at = clock()
        if at != asked:
            asked, told = at, from_epoch(_EPOCH + at)
        return told

    return now


def _first_objects(options: ServerOptions) -> StoreState:
    """Return the server's initial objects, created once per process with a fixed seed, so that runs do not differ."""
    key = (
        options.host,
        options.port,
        options.authorization_mode,
        options.controllers,
        options.enable_admission_plugins,
        options.disable_admission_plugins,
        options.window,
        options.window_bytes,
    )
    state = _prepared.get(key)
    if state is None:
        with deterministic(_SEED_OF_FIRST_OBJECTS, clock=lambda: 0.0, epoch=_EPOCH):
            begins = from_epoch(_EPOCH)
            state = ApiServer(replace(options, data_dir=None, wall_clock=lambda: begins)).first_objects()
        _prepared[key] = state
    return state


def _declared(controller: Controller) -> list[object]:
    """Return the kinds that a controller reconciles, and those that it declares to write."""
    written = [each.resource if isinstance(each, Permission) else each for each in controller.writes]
    children = [each.resource if isinstance(each, Watch) else each for each in controller.children]
    return [controller.resource, *written, *children]


@final
class _Claims:
    """Checker of the children when a program writes that an object is Ready."""

    def __init__(self, state: HarnessState) -> None:
        self.early: list[EarlyClaim] = []
        self._state = state
        self._ready = ReadyClaims()

    async def look(self, write: ProgramWrite) -> None:
        if not mapping(write.stored.get("status")):
            return
        obj = Resource.from_dict(write.stored)
        if not self._ready.turns(obj):
            return
        for name in sorted({each.resource for each in self._state.writes} - {write.resource}):
            with suppress(UnknownResourceError, NotFoundError):
                self.early += early_claims(obj, await self._state.client.list_all(name))


async def _rested(harness: Harness) -> None:
    """Wait until all programs have settled, including those that a fault holds up, even if the test continued early."""
    state = state_of(harness)
    while True:
        early = state.early_steps
        await harness.settled()
        if any(replica.held_up for replica in harness.replicas):
            await asyncio.sleep(LASTS)
        elif early == state.early_steps:
            return


def _line_of(error: BaseException) -> str:
    return ", ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])


def _without_secrets(told: str, writes: Sequence[ProgramWrite]) -> str:
    """Redact the text and the values of all Secrets, because a failed assert shows compared values."""
    values: set[str] = set()
    for write in writes:
        if told and write.resource == kinds.SECRET.group_resource:
            for value in mapping(write.stored.get("data")).values():
                values |= {text(value), b64decode(text(value)).decode(errors="ignore")}
    for value in sorted(values, key=len, reverse=True):
        told = told.replace(value, REDACTED) if len(value) >= _SHORTEST_SECRET else told
    return str(redact(told))


def _line(write: ProgramWrite) -> str:
    body = hashlib.sha256(msgspec.json.encode(write.stored, order="sorted")).hexdigest()[:12] if write.stored else "-"
    return f"{write.at:.6f} {write.replica} {write} {write.code} {body}"


@contextmanager
def _nothing_collected() -> Generator[None, None, None]:
    """Delay garbage collection, which runs finalizers at random moments, up to a limit of memory."""
    before = gc.get_threshold()
    gc.set_threshold(_MOST_GARBAGE, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _elsewhere(run: Callable[[], SimulationRun]) -> SimulationRun:
    """Run in this thread, or in a new thread that blocks the running event loop."""
    if not _runs_a_loop():
        return run()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="simulation") as thread:
        return thread.submit(run).result()


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def simulate(scenario: Scenario, options: SimulationOptions | None = None) -> SimulationReport:
    """Run a scenario with faults, and raise if it fails with any fault.

    First, each kind of fault strikes each write of the run without faults. Combinations follow. See
    ``SimulationOptions`` for the seed and the budget. The call blocks the event loop that awaits it, because each run
    has its own loop and replaces time and randomness in the whole process.

    Args:
        scenario: Async function with a ``Harness`` parameter.
        options: Seed and budget.

    Raises:
        SimulationFailedError: If the scenario fails. It describes the failures and how to repeat them.
        BrokenReferenceError: If the scenario fails without faults.
        SimulationRunningError: If another simulation runs in this process, in another thread or around this call.
    """
    report = Simulation(scenario, options).explore()
    if report.failures:
        raise SimulationFailedError(report)
    return report
