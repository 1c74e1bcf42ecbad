"""Intermediate results of a search."""

from __future__ import annotations

from typing import final

from deltaloop.simulation.core.coverage import Path, count_paths, count_struck
from deltaloop.simulation.core.oracles import SimulationRun
from deltaloop.simulation.core.reports import Failure, SimulationReport
from deltaloop.simulation.core.schedules import Schedule, names_of
from deltaloop.testing.injected_faults.core.program_writes import FaultKind, WriteName


@final
class Findings:
    def __init__(self, reference: SimulationRun) -> None:
        self.reference: SimulationRun = reference
        self.writes: tuple[WriteName, ...] = names_of(reference.writes)
        self.failures: dict[tuple[object, ...], Failure] = {}
        self.states: int = 0
        self.complete: bool = False
        self._unused_faults = 0
        self._counts: dict[WriteName, dict[FaultKind, int]] = {name: {} for name in self.writes}
        self._paths: dict[Path, int] = {}
        count_paths(self._paths, reference)
        self._nondeterminism = dict.fromkeys(reference.nondeterminism)

    def ran(self, schedule: Schedule, run: SimulationRun) -> None:
        self._unused_faults += len(run.unused_faults)
        count_struck(self._counts, schedule, run)
        count_paths(self._paths, run)
        self._nondeterminism |= dict.fromkeys(run.nondeterminism)

    def failed(self, failure: Failure) -> None:
        """Keep a failure, unless a similar failure is known."""
        self.failures.setdefault(_signature(failure), failure)

    def report(self, runs: int) -> SimulationReport:
        return SimulationReport(
            runs=runs,
            writes=self.writes,
            failures=tuple(self.failures.values()),
            unused_faults=self._unused_faults,
            complete=self.complete,
            coverage=self._counts,
            paths=self._paths,
            states=self.states,
            nondeterminism=tuple(self._nondeterminism),
            reference=self.reference,
        )


def _signature(failure: Failure) -> tuple[object, ...]:
    """Return the key of similar failures: the problems and their objects."""
    return tuple(sorted({(problem.oracle, problem.place[:2]) for problem in failure.problems}))
