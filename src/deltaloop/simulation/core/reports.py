"""Reports of a simulation as text, JSON, HTML page, tests or CI annotations, with names and redacted fields only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Final, final

import msgspec

from deltaloop.api.json_values import text
from deltaloop.simulation.core.coverage import (
    Coverage,
    Path,
    count_paths,
    count_struck,
    coverage_rows,
    no_op_writes,
    path_rows,
)
from deltaloop.simulation.core.oracles import Oracle, Problem, SimulationRun
from deltaloop.simulation.core.schedules import Schedule, ScheduledFault, names_of, replay_text, schedule_text
from deltaloop.testing.injected_faults.core.program_writes import (
    FaultKind,
    ProgramWrite,
    UserStep,
    WriteName,
    WriteReason,
)


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


_USER: Final = "the user"
_NO_ANSWER: Final = "no response"
_MOST_IN_A_NAME: Final = 60
_MOST_REASONS: Final = 5
_MOST_LINES: Final = 80  # lines of a failure in a terminal, because runs that never settle are long
_LAST_LINES: Final = 20
_WHICH: Final = 2  # kind and key
_WRONG: Final = {
    Oracle.END_STATE: "its final state is wrong",
    Oracle.RECREATED: "its content is lost",
    Oracle.LEADERSHIP: "its lease was lost",
}
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1c2733; }
h2 { margin-top: 2.5rem; border-top: 1px solid #d5dbe1; padding-top: 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; }
th, td { text-align: left; padding: .15rem .6rem .15rem 0; vertical-align: top; }
th { color: #5b6a78; font-weight: 600; }
td { font-family: ui-monospace, monospace; font-size: 13px; }
tr.struck td { background: #fff3d6; }
tr.why td { color: #5b6a78; padding-top: .6rem; }
.wrong { color: #a3200d; }
code { background: #f0f2f4; padding: .1rem .3rem; }
@media (prefers-color-scheme: dark) {
  body { background: #14191f; color: #d8dee5; } h2 { border-color: #35404b; } th { color: #93a1af; }
  tr.struck td { background: #4a3a10; } tr.why td { color: #93a1af; }
  .wrong { color: #ff8f7a; } code { background: #232b33; }
}
"""


@final
class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Schedule with which the scenario fails.

    Attributes:
        schedule: Minimal faults.
        problems: Problems of the run.
        run: Result of the run.
        seed: Random seed.
    """

    schedule: Schedule
    problems: tuple[Problem, ...]
    run: SimulationRun
    seed: int = 0

    @property
    def replay(self) -> str:
        """Schedule, preceded by the seed unless it is 0, for ``--replay`` and ``parse_replay``."""
        return replay_text(self.schedule, seed=self.seed)

    @property
    def story(self) -> str:
        """Description of the faults."""
        return "; ".join(fault.story for fault in self.schedule) or "without faults"

    def fault_at(self, write: ProgramWrite) -> str:
        """Return the description of the fault that struck a write, or an empty string."""
        faults = (fault for fault in self.schedule if isinstance(fault, ScheduledFault))
        return next((fault.story for fault in faults if fault.write == write.name), "")

    def problem_at(self, write: ProgramWrite) -> str:
        """Return the problems of the run that this write shows, or an empty string."""
        return "; ".join(
            dict.fromkeys(_WRONG[problem.oracle] for problem in self.problems if self._is_of(problem, write))
        )

    def _is_of(self, problem: Problem, write: ProgramWrite) -> bool:
        if problem.oracle not in _WRONG or len(problem.place) < _WHICH:
            return False
        kind, key = problem.place[:_WHICH]
        resources = {kind} | {each.resource for each in self.run.writes if _kind_of(each) == kind}
        found = [
            each.number
            for each in self.run.writes
            if each.carried_out
            and (each.resource in resources and each.key == key)
            and (problem.oracle is not Oracle.RECREATED or each.verb == "delete")
            and (problem.oracle is not Oracle.LEADERSHIP or each.lost_lease)
        ]
        return found[-1:] == [write.number]

    def __str__(self) -> str:
        told = "\n".join(f"    {problem}" for problem in self.problems)
        lines = [*self._lines()]
        if len(lines) > _MOST_LINES:
            left = f"    ... {len(lines) - _MOST_LINES} more lines in the JSON output and the HTML page"
            lines = [*lines[: _MOST_LINES - _LAST_LINES], left, *lines[-_LAST_LINES:]]
        story = "\n".join(f"    {line}" for line in lines)
        return f"{self.story}:\n{told}\n  writes:\n{story}\n  again: {self.replay!r}"

    def _lines(self) -> Iterator[str]:
        for write, new in with_reasons(self.run):
            at = f"{write.at:9.3f} s  "
            if isinstance(write, UserStep):
                yield f"{at}{_USER}: {write.text}"
                continue
            if new is not None:
                yield f"{at}{because(new)}"
            if new is not None and new.unseen:
                yield f"{' ' * len(at)}not seen yet: {unseen(new)}"
            remarks = "; ".join(filter(None, (self.fault_at(write), self.problem_at(write))))
            gone = ", undone by the restore" if write.undone else ""
            line = f"{at}{'  ' if write.reason else ''}{write} -> {_answer(write)}{gone}"
            yield line + (f"   <- {remarks}" if remarks else "")


def all_written(run: SimulationRun) -> Iterator[ProgramWrite | UserStep]:
    steps = list(run.steps)
    for number, write in enumerate(run.writes):
        while steps and steps[0].after <= number:
            yield steps.pop(0)
        yield write
    yield from steps


def _kind_of(write: ProgramWrite) -> str:
    return f"{text(write.stored.get('apiVersion'))}/{text(write.stored.get('kind'))}" if write.stored else ""


def with_reasons(run: SimulationRun) -> Iterator[tuple[ProgramWrite | UserStep, WriteReason | None]]:
    """Yield each write with its reason, or None if the reason equals that of the program's previous write."""
    before: dict[str, str] = {}
    last = ""
    for write in all_written(run):
        if isinstance(write, UserStep):
            yield write, None
            continue
        told = "" if write.reason is None else because(write.reason)
        is_same = before.get(write.replica) == told and last == write.replica
        before[write.replica], last = told, write.replica
        yield write, None if is_same else write.reason


def because(reason: WriteReason) -> str:
    shown = [*reason.triggers[:_MOST_REASONS]]
    left = len(reason.triggers) - len(shown)
    return f"{reason.reconcile}: {', '.join([*shown, *([f'{left} more'] if left else [])]) or 'unknown trigger'}"


def unseen(reason: WriteReason) -> str:
    shown = [*reason.unseen[:_MOST_REASONS]]
    left = len(reason.unseen) - len(shown)
    return ", ".join([*shown, *([f"{left} more"] if left else [])])


@final
class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a simulation.

    Attributes:
        runs: Number of runs.
        writes: Writes of the run without faults, which are the places for faults.
        failures: Failures with minimal faults.
        unused_faults: Number of planned faults that never met their write.
        complete: Whether all schedules with one fault were tried.
        coverage: Number of faults per write and kind.
        paths: Number of reconciles with the same controller, writes and responses.
        states: Number of states in all runs: objects after a write, and pairs of consecutive writes.
        nondeterminism: Descriptions of events that the seed does not decide. With such events, a run may not be
            repeatable.
        reference: Run without faults.
    """

    runs: int
    writes: tuple[WriteName, ...]
    failures: tuple[Failure, ...]
    unused_faults: int = 0
    complete: bool = True
    coverage: Coverage = msgspec.field(default_factory=dict[WriteName, Mapping[FaultKind, int]])
    paths: Mapping[Path, int] = msgspec.field(default_factory=dict[Path, int])
    states: int = 0
    nondeterminism: tuple[str, ...] = ()
    reference: SimulationRun | None = None

    @property
    def no_op_writes(self) -> Mapping[str, tuple[int, int]]:
        """Kinds of no-op writes in the run without faults, each with the number of no-ops and of all writes."""
        return {} if self.reference is None else no_op_writes(self.reference)

    @property
    def summary(self) -> str:
        """One line with the number of runs and failures."""
        tried = f"{self.runs} runs over {len(self.writes)} writes"
        if not self.complete:
            tried += ", not all tried"
        if self.unused_faults:
            tried += f" ({self.unused_faults} faults met no write)"
        found = len(self.failures)
        failed = "1 failure" if found == 1 else f"{found} failures"
        return f"{tried}: {failed}" if found else f"{tried}: no failures"

    def __str__(self) -> str:
        told = (f"{number}. {failure}" for number, failure in enumerate(self.failures, start=1))
        no_ops = ["\n".join(no_op_lines(self))] if self.no_op_writes else []
        left_open = ["\n    ".join(["the seed does not determine these events:", *self.nondeterminism])]
        return "\n\n".join([self.summary, *told, *no_ops, *(left_open if self.nondeterminism else [])])


def no_op_lines(report: SimulationReport) -> list[str]:
    """Return a line for each kind of no-op writes, which are not failures but load the server."""
    return [
        f"without faults, {count} of {whole} writes were no-ops: {kind}"
        for kind, (count, whole) in report.no_op_writes.items()
    ]


def report_fields(report: SimulationReport) -> dict[str, object]:
    return {
        "runs": report.runs,
        "complete": report.complete,
        "unused_faults": report.unused_faults,
        "states": report.states,
        "nondeterminism": [*report.nondeterminism],
        "coverage": {
            str(name): {kind.value: count for kind, count in kinds.items()} for name, kinds in report.coverage.items()
        },
        "paths": [
            {"controller": path[0], "writes": [*path[1:]], "reconciles": count} for path, count in report.paths.items()
        ],
        "no_op_writes": {
            kind: {"writes": whole, "changed_nothing": count} for kind, (count, whole) in report.no_op_writes.items()
        },
        "writes": [str(name) for name in report.writes],
        "failures": [_failure_fields(failure) for failure in report.failures],
    }


def _failure_fields(failure: Failure) -> dict[str, object]:
    return {
        "replay": failure.replay,
        "story": failure.story,
        "problems": [
            {"oracle": problem.oracle.value, "text": problem.text, "place": [*problem.place]}
            for problem in failure.problems
        ],
        "user": [{"at": round(step.at, 6), "write": step.text, "after": step.after} for step in failure.run.steps],
        "writes": [
            {
                "at": round(write.at, 6),
                "replica": write.replica,
                "task": write.task,
                "reconcile": None if write.reason is None else write.reason.reconcile,
                "because": [] if write.reason is None else [*write.reason.triggers],
                "unseen": [] if write.reason is None else [*write.reason.unseen],
                "write": str(write),
                "code": write.code or None,
                "fault": failure.fault_at(write),
                "problem": failure.problem_at(write),
                "undone": write.undone,
            }
            for write in failure.run.writes
        ],
    }


def annotation_lines(report: SimulationReport, *, file: str, line: int) -> Iterator[str]:
    """Yield a line for each failure that GitHub's log shows as an annotation of the code."""
    for failure in report.failures:
        wrong = "; ".join(str(problem) for problem in failure.problems)
        message = f"{failure.story}: {wrong}\nagain: {failure.replay}"
        place = f"file={_property(file)},line={line},title={_property('simulation')}"
        yield f"::error {place}::{_message(message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def replaying_test(report: SimulationReport, *, module: str, scenario: str) -> str:
    """Return a file with a test for each failure, which fails until the problem is fixed."""
    seeded = any(failure.seed for failure in report.failures)
    imported = ", ".join(["Simulation", *(["SimulationOptions"] if seeded else []), "parse_schedule"])
    head = (
        '"""Failures of a simulation. Each test repeats one run, and fails until the problem is fixed."""\n\n'
        "from __future__ import annotations\n\n"
        f"from deltaloop.simulation import {imported}\nfrom {module} import {scenario}\n"
    )
    names: set[str] = set()
    return "\n\n".join([head, *(_test_of(failure, scenario, names) for failure in report.failures)])


def _test_of(failure: Failure, scenario: str, names: set[str]) -> str:
    name = re.sub(r"\W+", "_", failure.replay).strip("_").lower()[:_MOST_IN_A_NAME].rstrip("_") or "without_faults"
    while name in names:
        name += "_again"
    names.add(name)
    story = failure.story.replace("\\", "").replace('"', "'")
    seeded = f", SimulationOptions(seed={failure.seed})" if failure.seed else ""
    return (
        f"def test_{name}() -> None:\n"
        f'    """{story[0].upper()}{story[1:]}."""\n'
        f'    failure = Simulation({scenario}{seeded}).replay(parse_schedule("{schedule_text(failure.schedule)}"))\n'
        "    assert failure is None, str(failure)\n"
    )


def report_page(report: SimulationReport, *, title: str) -> str:
    """Return a self-contained HTML page with all failures and the run without faults."""
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1><p>{escape(report.summary)}.</p>",
    ]
    for number, failure in enumerate(report.failures, start=1):
        parts.append(f"<h2>{number}. {escape(failure.story[0].upper() + failure.story[1:])}</h2><ul>")
        parts += [
            f'<li class="wrong">{escape(str(problem))} <small>({escape(problem.oracle.value)})</small></li>'
            for problem in failure.problems
        ]
        parts.append(f"</ul><p>Again: <code>--replay {escape(failure.replay)}</code></p>")
        parts += [_table(failure.run, failure)]
    if report.nondeterminism:
        parts += ["<h2>Events that the seed does not determine</h2><ul>", *map(_item, report.nondeterminism), "</ul>"]
    if report.coverage:
        parts += ["<h2>Faults per write</h2>", _coverage_table(report.coverage)]
    if report.paths:
        rows = [f"<tr><td>{count}</td><td>{escape(told)}</td></tr>" for count, told in path_rows(report.paths)]
        head = "<tr><th>reconciles</th><th>wrote</th></tr>"
        parts += ["<h2>Writes per reconcile</h2>", f"<table>{head}{''.join(rows)}</table>"]
    if report.no_op_writes:
        parts += ["<h2>No-op writes</h2><ul>", *map(_item, no_op_lines(report)), "</ul>"]
    if report.reference is not None:
        parts += ["<h2>Run without faults</h2>", _table(report.reference, None)]
    return "\n".join([*parts, "</body></html>\n"])


def _item(text: str) -> str:
    return f"<li>{escape(text)}</li>"


def _coverage_table(counts: Coverage) -> str:
    head, *rows = coverage_rows(counts)
    cells = ["<table><tr>", *(f"<th>{escape(cell)}</th>" for cell in head), "</tr>"]
    for row in rows:
        cells += ["<tr>", *(f"<td>{escape(cell)}</td>" for cell in row), "</tr>"]
    return "".join([*cells, "</table>"])


def _table(run: SimulationRun, failure: Failure | None) -> str:
    rows = ["<table><tr><th>s</th><th>program</th><th>task</th><th>write</th><th>response</th><th></th></tr>"]
    for write, new in with_reasons(run):
        if isinstance(write, UserStep):
            rows.append(
                f"<tr><td>{write.at:.3f}</td><td>{_USER}</td><td></td><td>{escape(write.text)}</td><td></td><td></td></tr>"
            )
            continue
        if new is not None:
            told = because(new) + (f"; not seen yet: {unseen(new)}" if new.unseen else "")
            why = f'<td colspan="4">{escape(told)}</td>'
            rows.append(f'<tr class="why"><td>{write.at:.3f}</td><td>{escape(write.replica)}</td>{why}</tr>')
        struck = "" if failure is None else failure.fault_at(write)
        cells = [f"{write.at:.3f}", write.replica, write.task, str(write), _answer(write), struck]
        shown = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        if failure is not None and (wrong := failure.problem_at(write)):
            shown = shown.removesuffix("</td>") + f' <span class="wrong">{escape(wrong)}</span></td>'
        rows.append(f'<tr class="struck">{shown}</tr>' if struck else f"<tr>{shown}</tr>")
    return "\n".join([*rows, "</table>"])


def _answer(write: ProgramWrite) -> str:
    return str(write.code) if write.code else _NO_ANSWER
