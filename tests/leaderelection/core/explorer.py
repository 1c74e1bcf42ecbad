"""Explores everything that can happen to a few candidates and one lock, breadth first, and finds the shortest trace
to a state with two leaders.

A state holds the lock, the candidates, and their messages. In each state anything may happen next: a tick passes, a
candidate does what its election asks for (or is slow and does not), a request reaches the server, an answer reaches the
candidate, a request times out, a request that was given up reaches the server after all, a candidate gives its lock up,
or crashes and comes back. A message that is lost is one that is never delivered before its timeout; a paused process is
one that does nothing while ticks pass. So no fault needs a rule of its own.

States are equal if they differ only in absolute time and in the numbers of versions; then the whole space is finite,
and it is explored to the end: the result holds for runs of any length.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from deltaloop.leaderelection.core.effects import Create, Effect, Read, Request, StepDown, Update, Wait
from deltaloop.leaderelection.core.election import Election, Phase
from deltaloop.leaderelection.core.record import LeaderElectionRecord, LockState
from deltaloop.leaderelection.core.timing import ElectionTiming

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Settings:
    """What the candidates are, and which faults there are beyond delay and loss."""

    timings: tuple[ElectionTiming, ...]
    rates: tuple[float, ...]
    skews: tuple[float, ...] = (0.0, 0.0, 0.0)
    election: Callable[[str, ElectionTiming], Election] = Election
    preconditions: bool = True
    late_requests: int = 1
    releases: int = 0
    crashes: int = 0
    restarts: int = 0
    """How often a candidate dies and comes back as somebody else, as a new pod does."""
    pauses: int = 0
    """How often a candidate stops as a process does: nothing of it moves, not even answers that have come."""
    times_matter: bool = False
    begin_with_a_leader: bool = True
    slow_reads: bool = False
    """Whether the answer to a read may dwell on its way; without, a read that arrives is answered at once."""


@dataclass(frozen=True)
class Answer:
    kind: str
    state: LockState | None = None


@dataclass
class World:
    tick: int
    lock: LockState | None
    versions: int
    candidates: list[Election]
    answers: list[Answer | None]
    late: list[tuple[int, Request]]
    releases: int
    crashes: int
    restarts: int = 0
    pauses: int = 0
    paused: frozenset[int] = frozenset()

    def now(self, settings: Settings, index: int) -> float:
        return self.tick * settings.rates[index]

    def leaders(self, settings: Settings) -> list[str]:
        return [
            candidate.identity
            for index, candidate in enumerate(self.candidates)
            if candidate.is_leading(self.now(settings, index))
        ]

    def fork(self) -> World:
        return replace(self, candidates=list(self.candidates), answers=list(self.answers), late=list(self.late))

    def touch(self, index: int) -> Election:
        """Return a candidate of this fork that may be changed."""
        candidate = copy.copy(self.candidates[index])
        self.candidates[index] = candidate
        return candidate


@dataclass
class Result:
    states: int
    violation: list[str] = field(default_factory=list[str])
    stuck: list[str] = field(default_factory=list[str])
    steps: int = 0
    complete: bool = True


def start(settings: Settings) -> World:
    candidates = [settings.election(f"c{index}", timing) for index, timing in enumerate(settings.timings)]
    for candidate in candidates:
        candidate.join(0.0)
    return World(
        tick=0,
        lock=None,
        versions=0,
        candidates=candidates,
        answers=[None] * len(candidates),
        late=[],
        releases=settings.releases,
        crashes=settings.crashes,
        restarts=settings.restarts,
        pauses=settings.pauses,
    )


def start_with_a_leader(settings: Settings) -> World:
    """Begin where the first candidate has just won, and the others have just seen it."""
    world = start(settings)
    for index in range(len(world.candidates)):
        _run_until_wait(world, settings, index)
    return world


def explore(settings: Settings, *, limit: int = 200_000, check_liveness_every: int = 0) -> Result:
    """Visit states by their distance from the start; stop at the first with two leaders, or without a way to a leader.

    Args:
        settings: What to explore.
        limit: After how many states to stop.
        check_liveness_every: From each state of this number on it is checked that somebody comes to lead.
    """
    first = start_with_a_leader(settings) if settings.begin_with_a_leader else start(settings)
    first_key = key_of(first, settings)
    parents: dict[object, tuple[object, str] | None] = {first_key: None}
    depths = {first_key: 0}
    queue = deque([(first_key, first)])
    result = Result(states=1)
    while queue:
        key, world = queue.popleft()
        for name, following in steps(world, settings):
            new_key = key_of(following, settings)
            if new_key in parents:
                continue
            parents[new_key] = (key, name)
            depths[new_key] = result.steps = depths[key] + 1
            result.states += 1
            leaders = following.leaders(settings)
            if len(leaders) > 1:
                result.violation = [*trace(parents, new_key), f"two leaders: {' and '.join(leaders)}"]
                return result
            if (
                check_liveness_every
                and result.states % check_liveness_every == 0
                and not comes_to_lead(following, settings)
            ):
                result.stuck = trace(parents, new_key)
                return result
            if result.states >= limit:
                result.complete = False
                return result
            queue.append((new_key, following))
    return result


def trace(parents: dict[object, tuple[object, str] | None], key: object) -> list[str]:
    names: list[str] = []
    while (parent := parents[key]) is not None:
        key, name = parent
        names.append(name)
    return names[::-1]


def steps(world: World, settings: Settings) -> Iterator[tuple[str, World]]:
    ticked = world.fork()
    ticked.tick += 1
    yield "a tick passes", ticked
    for index, candidate in enumerate(world.candidates):
        now = world.now(settings, index)
        if index in world.paused:
            resumed = world.fork()
            resumed.paused = world.paused - {index}
            yield f"{candidate.identity} goes on", resumed
            yield from _arrival(world, settings, index, candidate)
            continue
        if world.pauses:
            paused = world.fork()
            paused.pauses -= 1
            paused.paused = world.paused | {index}
            yield f"{candidate.identity} is paused", paused
        if candidate._pending is None:
            following = act(world, settings, index)
            if following is not None:
                yield following
        else:
            yield from _message_steps(world, settings, index, candidate, now)
        if world.releases and candidate.phase is Phase.LEADING:
            released = world.fork()
            released.releases -= 1
            _give_up_request(released, settings, index)
            released.touch(index).release(now)
            yield f"{candidate.identity} gives the lock up", released
        if world.crashes and candidate.phase is Phase.LEADING:
            crashed = world.fork()
            crashed.crashes -= 1
            _give_up_request(crashed, settings, index)
            fresh = settings.election(candidate.identity, settings.timings[index])
            fresh.join(now)
            crashed.candidates[index] = fresh
            yield f"{candidate.identity} crashes and comes back", crashed
        if world.restarts:
            restarted = world.fork()
            restarted.restarts -= 1
            _give_up_request(restarted, settings, index)
            other = settings.election(f"{candidate.identity}'", settings.timings[index])
            other.join(now)
            restarted.candidates[index] = other
            yield f"{candidate.identity} dies and comes back as {other.identity}", restarted
    for position, (index, request) in enumerate(world.late):
        arrived = world.fork()
        del arrived.late[position]
        serve(arrived, settings, request)
        yield f"a request that c{index} gave up arrives: {_shown(request)}", arrived


def _arrival(world: World, settings: Settings, index: int, candidate: Election) -> Iterator[tuple[str, World]]:
    """Let the request of a paused candidate reach the server; its answer waits."""
    request = candidate._pending
    if request is not None and world.answers[index] is None:
        arrived = world.fork()
        arrived.answers[index] = serve(arrived, settings, request)
        yield f"{candidate.identity}'s request arrives: {_shown(request)}", arrived


def _message_steps(
    world: World, settings: Settings, index: int, candidate: Election, now: float
) -> Iterator[tuple[str, World]]:
    request = candidate._pending
    assert request is not None
    answer = world.answers[index]
    if answer is None:
        arrived = world.fork()
        served = serve(arrived, settings, request)
        if isinstance(request, Read) and not settings.slow_reads:
            feed(arrived.touch(index), served, now)
            yield f"{candidate.identity} reads: {_held(served)}", arrived
        else:
            arrived.answers[index] = served
            yield f"{candidate.identity}'s request arrives: {_shown(request)}", arrived
    else:
        answered = world.fork()
        answered.answers[index] = None
        feed(answered.touch(index), answer, now)
        yield f"{candidate.identity} gets its answer: {answer.kind}", answered
    if now >= candidate._pending_at + request.timeout:
        failed = world.fork()
        _give_up_request(failed, settings, index)
        failed.touch(index).failed(now, chance=0.0)
        yield f"{candidate.identity}'s request times out", failed


def _give_up_request(world: World, settings: Settings, index: int) -> None:
    request = world.candidates[index]._pending
    if (
        request is not None
        and world.answers[index] is None
        and not isinstance(request, Read)
        and len(world.late) < settings.late_requests
    ):
        world.late.append((index, request))
    world.answers[index] = None


def act(world: World, settings: Settings, index: int) -> tuple[str, World] | None:
    """Let a candidate do what its election asks for; None if that is to wait."""
    following = world.fork()
    candidate = following.touch(index)
    now = world.now(settings, index)
    wall = EPOCH + timedelta(seconds=now + settings.skews[index])
    effect = candidate.ask(now, wall=wall)
    if isinstance(effect, Wait):
        return None
    if isinstance(effect, Read | Create | Update):
        return f"{candidate.identity} sends: {_shown(effect)}", following
    if isinstance(effect, StepDown):
        candidate.leave(now)
    candidate.join(now)
    return f"{candidate.identity} contends again: {effect}", following


def serve(world: World, settings: Settings, request: Request) -> Answer:
    if isinstance(request, Read):
        return Answer("observed", world.lock)
    if isinstance(request, Create):
        if world.lock is not None:
            return Answer("conflicted")
    elif world.lock is None or (settings.preconditions and world.lock.version != request.version):
        return Answer("conflicted")
    world.versions += 1
    world.lock = LockState(request.record, str(world.versions))
    return Answer("wrote", world.lock)


def feed(candidate: Election, answer: Answer, now: float) -> None:
    if answer.kind == "observed":
        candidate.observed(answer.state, now, chance=0.0)
    elif answer.kind == "wrote":
        assert answer.state is not None
        candidate.wrote(answer.state.version, now, chance=0.0)
    else:
        candidate.conflicted(now, chance=0.0)


def comes_to_lead(world: World, settings: Settings, *, ticks: int = 30) -> bool:
    """Tell whether somebody comes to lead, and stays it, once the network works and everybody acts at once."""
    world = world.fork()
    world.late.clear()
    world.paused = frozenset()
    led_for = 0
    for _ in range(ticks):
        for index in range(len(world.candidates)):
            _run_until_wait(world, settings, index)
        led_for = led_for + 1 if world.leaders(settings) else 0
        if led_for >= 4:
            return True
        world.tick += 1
    return False


def _run_until_wait(world: World, settings: Settings, index: int) -> None:
    for _ in range(20):
        candidate = world.touch(index)
        now = world.now(settings, index)
        if candidate._pending is not None:
            answer = world.answers[index] or serve(world, settings, candidate._pending)
            world.answers[index] = None
            feed(candidate, answer, now)
            continue
        following = act(world, settings, index)
        if following is None:
            return
        world.candidates[index] = following[1].candidates[index]
    raise AssertionError("a candidate never waits")


def key_of(world: World, settings: Settings) -> object:
    """Name a state without absolute times, absolute versions, and what decides nothing."""
    names: dict[str, int] = {}

    def lock_key(state: LockState | None) -> object:
        if state is None:
            return None
        return (names.setdefault(state.version, len(names)), record_key(state.record))

    def record_key(record: LeaderElectionRecord) -> object:
        times: Any = None
        if settings.times_matter and record.renew_time is not None:
            times = max((record.renew_time - EPOCH).total_seconds() - world.tick, -12.0)
        return (record.holder_identity, record.lease_duration_seconds, times)

    def request_key(request: Request | None) -> object:
        if request is None or isinstance(request, Read):
            return request and "read"
        if isinstance(request, Create):
            return ("create", record_key(request.record))
        return (names.setdefault(request.version, len(names)), record_key(request.record))

    lock = lock_key(world.lock)
    parts: list[object] = []
    for index, candidate in enumerate(world.candidates):
        now, timing = world.now(settings, index), candidate.timing
        pending = candidate._pending
        answer = world.answers[index]
        parts.append(
            (
                candidate.phase,
                _since(candidate._observed_at, now, 9.0),
                lock_key(candidate._observed),
                candidate._version_is_current,
                _until(candidate._next_at, now),
                _since(candidate._attempt_at, now, timing.retry_period),
                _since(candidate._renewed_at, now, 9.0) if world.releases or settings.releases else 0.0,
                _until(candidate.guard_until, now),
                candidate._step,
                request_key(pending),
                _since(candidate._pending_at, now, timing.renew_deadline) if pending is not None else None,
                _until(candidate._pending_at + pending.timeout, now) if pending is not None else None,
                candidate._fast if candidate.phase is Phase.LEADING else None,
                candidate._write_unknown_at is not None,
                _until(candidate._release_until, now) if candidate.phase is Phase.RELEASING else None,
                candidate._loss,
                (answer.kind, lock_key(answer.state)) if answer is not None else None,
            )
        )
    late = tuple((index, request_key(request)) for index, request in world.late)
    phase = tuple((world.tick * rate) % 1.0 for rate in settings.rates) if settings.times_matter else ()
    left = (world.releases, world.crashes, world.restarts, world.pauses)
    return (lock, tuple(parts), late, left, world.paused, phase)


def _held(answer: Answer) -> str:
    return f"held by {answer.state.record.holder_identity or 'nobody'}" if answer.state is not None else "no lock"


def _since(at: float, now: float, most: float) -> float:
    return max(at - now, -most)


def _until(at: float, now: float) -> float:
    return math.inf if at == math.inf else max(at - now, 0.0)


def _shown(request: Effect) -> str:
    if isinstance(request, Create):
        return f"create, holder {request.record.holder_identity}"
    if isinstance(request, Update):
        return f"update of version {request.version}, holder {request.record.holder_identity or 'nobody'}"
    return "read"
