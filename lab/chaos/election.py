"""Leadership changes by force: ``python -m lab.chaos.election --changes 200``.

Three candidates, each a process behind a relay of its own, contend for one Lease of an embedded server, and the leader
writes to a log without a break. Whoever leads is disturbed until somebody else's write is in the log. At the end: how
long that took, and whether anybody wrote who must not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import random
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.leaderelection import ElectionTiming
from deltaloop.leaderelection.clock import boot_time
from lab.chaos.log_keeper import LogKeeper
from lab.chaos.relay import Mode, Relay

WRITE_EVERY = 0.004
PATIENCE = 20.0
ROOT = Path(__file__).parents[2]
STORMS: dict[str, Mode] = {
    "cut": "cut",
    "hang": "hang",
    "slow server": "slow",
    "409 storm": "conflict",
    "500 storm": "error",
}
FAULTS: Final = (
    "kill",
    "cut",
    "pause between check and send",
    "slow server",
    "409 storm",
    "pause",
    "500 storm",
    "hang",
)


@dataclass(frozen=True)
class Program:
    """Who contends: ours, or somebody else's elector.

    Attributes:
        command: What to run; the relay's address, the log's socket, the identity and the times follow.
        timing: The lease's settings.
        faults: What is done to the leader, in turn.
        ends_by_itself: Whether a candidate may end on the way; it is started again.
        settle: Seconds to go on watching after each change, with the fault still there.
    """

    command: tuple[str, ...] = (sys.executable, "-m", "lab.chaos.candidate")
    timing: ElectionTiming = field(
        default_factory=lambda: ElectionTiming(lease_duration=1.0, renew_deadline=0.7, retry_period=0.15)
    )
    faults: tuple[str, ...] = FAULTS
    ends_by_itself: bool = False
    settle: float = 0.0


OURS: Final = Program()


@dataclass
class Candidate:
    """One process and its relay."""

    identity: str
    relay: Relay
    program: Program
    process: subprocess.Popen[bytes] | None = None
    pauses: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def start(self, socket: Path, log: Path) -> None:
        timing = self.program.timing
        times = f"{timing.lease_duration},{timing.renew_deadline},{timing.retry_period},{WRITE_EVERY}"
        command = [*self.program.command, self.relay.url, str(socket), self.identity, times]
        with log.open("ab") as file:
            self.process = subprocess.Popen(command, stderr=file, cwd=ROOT)

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        assert self.process.poll() is None, f"{self.identity} ended with exit code {self.process.returncode}"
        self.process.send_signal(number)

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def was_paused(self, since: float, until: float) -> bool:
        return any(begin <= until and end >= since for begin, end in self.pauses)


@dataclass
class Outcome:
    """What a run showed."""

    keeper: LogKeeper
    timing: ElectionTiming
    failovers: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list[float]))

    def lines(self, *, violations: int = 20) -> list[str]:
        everything = sorted(itertools.chain.from_iterable(self.failovers.values()))
        keeper = self.keeper
        lines = [
            (
                f"lease duration {self.timing.lease_duration:g} s, renew deadline {self.timing.renew_deadline:g} s, "
                f"retry period {self.timing.retry_period:g} s"
            ),
            (
                f"{len(everything)} leadership changes by force; failover p50 {quantile(everything, 50):.2f} s, "
                f"p99 {quantile(everything, 99):.2f} s, longest {everything[-1]:.2f} s"
            ),
        ]
        lines += [
            f"  {fault:30} {len(times):4} times, p50 {quantile(sorted(times), 50):.2f} s, longest {max(times):.2f} s"
            for fault, times in sorted(self.failovers.items())
        ]
        return [
            *lines,
            f"{keeper.accepted} writes in the log, {keeper.refused_by_guard} refused by the guard",
            (
                f"sent later than the sender's own deadline: {keeper.late_paused} by a process stopped between check "
                f"and send, {keeper.late_preempted} by one that the scheduler held up there"
            ),
            f"stopped by the fencing token: {keeper.stopped_by_token}",
            f"violations: {len(keeper.violations)}",
            *(f"  {text}" for text in keeper.violations[:violations]),
        ]


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Add up what several runs at once have shown."""
    first, *others = outcomes
    for other in others:
        for fault, times in other.failovers.items():
            first.failovers[fault] += times
        for count in ("accepted", "refused_by_guard", "late_paused", "late_preempted", "stopped_by_token"):
            setattr(first.keeper, count, getattr(first.keeper, count) + getattr(other.keeper, count))
        first.keeper.violations += other.keeper.violations
    return first


def quantile(values: list[float], percent: int) -> float:
    return values[0] if len(values) < 2 else statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


@dataclass
class Chaos:
    """One run."""

    candidates: dict[str, Candidate]
    keeper: LogKeeper
    socket: Path
    log: Path
    outcome: Outcome

    async def change(self, fault: str) -> None:
        """Disturb the leader until somebody else writes, and mend it."""
        for candidate in self.candidates.values():
            if candidate.program.ends_by_itself and candidate.has_ended:
                candidate.start(self.socket, self.log)
        held = self.keeper.writes_of_token
        await self.wait_for(lambda: self.keeper.writes_of_token >= held + 10, "a leader writes")
        leader, token = self.candidates[self.keeper.holder], self.keeper.token
        began = boot_time()
        leader.pauses.append((began, float("inf")))
        mend = self.disturb(leader, fault)
        try:
            await self.wait_for(lambda: self.keeper.holder != leader.identity, f"a successor after: {fault}")
        finally:
            stopped = fault.startswith("pause")
            if not stopped:
                leader.pauses.pop()
            if leader.program.settle:
                await asyncio.sleep(leader.program.settle)
            mend()
            if stopped:
                # What it had already let pass arrives within moments of the wake.
                await asyncio.sleep(0.25)
                leader.pauses[-1] = (began, boot_time())
        following = min(number for number in self.keeper.first_write_at if number > token)
        self.outcome.failovers[fault].append(self.keeper.first_write_at[following] - began)

    def disturb(self, leader: Candidate, fault: str) -> Callable[[], None]:
        if fault == "kill":
            leader.send(signal.SIGKILL)
            assert leader.process is not None
            leader.process.wait(5)
            # Not before there is a successor: the same identity would take its own lock up at once.
            return lambda: leader.start(self.socket, self.log)
        if fault == "pause":
            leader.send(signal.SIGSTOP)
            return lambda: leader.send(signal.SIGCONT)
        if fault == "pause between check and send":
            leader.send(signal.SIGUSR1)
            return lambda: leader.send(signal.SIGCONT)
        leader.relay.mode = STORMS[fault]
        return lambda: setattr(leader.relay, "mode", "pass")

    async def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    self.keeper.changed.clear()
                    await self.keeper.changed.wait()
        except TimeoutError:
            raise AssertionError(f"not within {PATIENCE:g} s: {what}; {self.log.read_text()[-2000:]}") from None


async def run(changes: int, seed: int, folder: Path, program: Program = OURS) -> Outcome:
    """Force leadership changes; the processes are ended in any case."""
    numbers = random.Random(seed)
    candidates: dict[str, Candidate] = {}
    keeper = LogKeeper(
        leads_at_most_until=lambda identity: candidates[identity].relay.written_at + program.timing.renew_deadline,
        was_paused=lambda identity, since, until: candidates[identity].was_paused(since, until),
    )
    outcome = Outcome(keeper, program.timing)
    async with ApiServer(ServerOptions(insecure_http=True)) as server, contextlib.AsyncExitStack() as stack:
        socket = folder / "log.socket"
        listening = await keeper.serve(socket)
        stack.callback(listening.close)
        for identity in ("a", "b", "c"):
            relay = Relay(server.url, numbers, jitter=0.02, slow=2 * program.timing.renew_deadline)
            stack.push_async_callback(relay.stop)
            await relay.start()
            candidates[identity] = Candidate(identity, relay, program)
        chaos = Chaos(candidates, keeper, socket, folder / "candidates.log", outcome)
        try:
            for candidate in candidates.values():
                candidate.start(socket, chaos.log)
            for fault in itertools.islice(itertools.cycle(program.faults), changes):
                await chaos.change(fault)
        finally:
            for candidate in candidates.values():
                if candidate.process is not None:
                    candidate.process.kill()
                    candidate.process.wait(5)
    return outcome


async def run_at_once(changes: int, elections: int, seed: int, program: Program = OURS) -> Outcome:
    """Force as many changes in several elections at once, each with a server, candidates and a log of its own."""
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[Outcome]] = []
        for number in range(elections):
            share = changes // elections + (number < changes % elections)
            tasks.append(group.create_task(_run_somewhere(share, seed + number, program)))
    return merged([task.result() for task in tasks])


async def _run_somewhere(changes: int, seed: int, program: Program) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return await run(changes, seed, Path(folder), program)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--elections", type=int, default=1, help="how many elections at once share the changes")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = boot_time()
    outcome = asyncio.run(run_at_once(arguments.changes, arguments.elections, arguments.seed))
    print("\n".join(outcome.lines()))
    print(f"took {boot_time() - began:.0f} s")
    return 1 if outcome.keeper.violations else 0


if __name__ == "__main__":
    sys.exit(main())
