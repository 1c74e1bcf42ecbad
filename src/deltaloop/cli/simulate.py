"""``deltaloop simulate``: run a module's scenario with faults, and print the failures."""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final, TextIO, cast

import typer

from deltaloop.api.json_values import at
from deltaloop.apiserver import read_manifests
from deltaloop.cli.load_controllers import LoadError, declared_in, import_target, load_program, named_object
from deltaloop.runtime.program.definitions import program_definitions
from deltaloop.simulation import Schedule, Simulation, SimulationOptions, SimulationReport, parse_replay
from deltaloop.simulation.core.coverage import coverage_text, paths_text
from deltaloop.simulation.core.reports import annotation_lines, replaying_test, report_fields, report_page
from deltaloop.simulation.core.schedules import ALL_KINDS, names_of, parse_kinds
from deltaloop.simulation.made_scenario import made_scenario
from deltaloop.simulation.simulator import Scenario

_HASH_SEED: Final = "PYTHONHASHSEED"
_DEFAULT: Final = "scenario"


def simulate(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE[:SCENARIO]",
            help="Module or file with async def scenario(world). Without it, a scenario is generated from the kinds.",
        ),
    ],
    *,
    manifests: Annotated[
        list[Path] | None,
        typer.Option(
            help="File of objects. Instead of a scenario, run the controllers of the module, and create, change and "
            "delete these objects. Repeatable."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    runs: Annotated[int, typer.Option(help="Maximum number of runs.", min=1)] = 1000,
    seconds: Annotated[
        float | None, typer.Option(help="Time after which no more runs start. Unlimited by default.", min=0)
    ] = None,
    combinations: Annotated[
        bool, typer.Option(help="Also combine two and three faults, after all single faults.")
    ] = True,
    faults: Annotated[
        str | None,
        typer.Option(metavar="KINDS", help="Faults to inject, for example crash-before,stale,order. Defaults to all."),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(metavar="FAULTS", help="Repeat a single run with its log. Reports show FAULTS after 'again'."),
    ] = None,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="text|json|github", help="Output format. github prints annotations."),
    ] = "text",
    html: Annotated[Path | None, typer.Option(help="File for an HTML page of the results.")] = None,
    write_test: Annotated[
        Path | None, typer.Option(help="File for a test module that repeats each failed run.")
    ] = None,
) -> None:
    """Run a scenario repeatedly, with crashes, lost responses and other faults at each write.

    The exit code is 1 if a fault changes the final state.
    """
    if output not in ("text", "json", "github"):
        raise typer.BadParameter(f"--output must be text, json or github, got {output!r}")
    if manifests and write_test is not None:
        raise typer.BadParameter(
            "--write-test and --manifests cannot be combined, because a test must import the scenario. Use one of them."
        )
    for file in (html, write_test):
        if file is not None and not file.absolute().parent.is_dir():
            raise typer.BadParameter(f"cannot write {file}: the folder {file.parent} does not exist.")
    with_fixed_hash_seed(os.environ)
    kinds = ALL_KINDS if faults is None else parse_kinds(faults)
    said, schedule = (None, None) if replay is None else parse_replay(replay)
    seed = seed if said is None else said
    options = SimulationOptions(seed=seed, runs=runs, seconds=seconds, combinations=combinations, faults=kinds)
    telling = Telling(output=output, html=html, test=write_test)
    importable = write_test is not None  # a test must be able to import it
    scenario = scenario_of(target, manifests) if manifests else load_scenario(target, may_be_made=not importable)
    if not run_simulation(scenario, options, schedule, typer.echo, telling):
        raise typer.Exit(1)


def with_fixed_hash_seed(environment: Mapping[str, str], *, replace_process: Callable[..., object] = os.execve) -> None:
    """Restart this process with a fixed hash seed, unless it has one, because the seed affects the order of sets."""
    if environment.get(_HASH_SEED, "random") == "random":
        replace_process(sys.executable, sys.orig_argv, {**environment, _HASH_SEED: "0"})


def load_scenario(target: str, *, may_be_made: bool = True) -> Scenario:
    """Import a module and return its scenario, or raise LoadError or InvalidArgumentError.

    Args:
        target: ``package.module`` or ``path/to/file.py`` with a function named ``scenario``, or ``module:name``. For a
            module without ``scenario``, a scenario is generated from its controllers and the classes of its kinds.
        may_be_made: Whether a generated scenario is allowed.
    """
    module, attribute = import_target(target, "SCENARIO, for example test_operator.py:scenario")
    if not attribute and not hasattr(module, _DEFAULT):
        controllers = declared_in(module).controllers
        definitions = program_definitions([module], controllers)
        if may_be_made and controllers and definitions:
            return made_scenario(controllers, definitions)
        if controllers and definitions:
            problem = f"lacks a scenario that a test can import. Add async def {_DEFAULT}(world)."
            raise LoadError(target, f"module {module.__name__} {problem}", subject=_DEFAULT)
        problem = f"module {module.__name__} does not contain {_DEFAULT!r}.{_others(module)}"
        raise LoadError(target, problem, subject=_DEFAULT)
    found = named_object(target, module, attribute or _DEFAULT)
    if not inspect.iscoroutinefunction(found) or len(inspect.signature(found).parameters) != 1:
        name = attribute or _DEFAULT
        raise LoadError(target, f"{name} must be like: async def {_DEFAULT}(world: Harness) -> None.", subject=name)
    return cast("Scenario", found)


def scenario_of(target: str, paths: Sequence[Path]) -> Scenario:
    """Import a module, and generate a scenario for its controllers; a CRD in a file replaces that of a class."""
    objects = [manifest.fields for path in paths for manifest in read_manifests(path)]
    module, controllers = load_program(target)
    given = {at(each, "metadata", "name") for each in objects if each.get("kind") == "CustomResourceDefinition"}
    made = [each for each in program_definitions([module], controllers) if each["metadata"]["name"] not in given]
    return made_scenario(controllers, [*made, *objects])


def _others(module: ModuleType) -> str:
    """Suggest other scenarios for an error message."""
    names = [name for name, value in vars(module).items() if inspect.iscoroutinefunction(value)]
    return f" Use MODULE:SCENARIO with one of {', '.join(sorted(names))}." if names else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Formats of a report: ``text``, ``json`` or ``github``, and files for an HTML page and tests."""

    output: str = "text"
    html: Path | None = None
    test: Path | None = None


def run_simulation(
    scenario: Scenario,
    options: SimulationOptions,
    replay: Schedule | None,
    say: Callable[[str], None],
    telling: Telling,
) -> bool:
    """Run a scenario, print the report, and return whether there are no failures.

    Raises BrokenReferenceError if the scenario fails without faults, OSError, and KeyboardInterrupt after the report.
    """
    simulation = Simulation(scenario, options)
    try:
        report, text = _explored(simulation) if replay is None else _only(simulation, replay)
    except KeyboardInterrupt:
        if simulation.found is not None:
            _tell(simulation.found, _text_of(simulation.found), scenario, say, telling)
        raise
    _tell(report, text, scenario, say, telling)
    return not report.failures


def _tell(
    report: SimulationReport, text: str, scenario: Scenario, say: Callable[[str], None], telling: Telling
) -> None:
    if telling.html is not None:
        telling.html.write_text(report_page(report, title=f"Simulation of {scenario.__name__}"), "utf-8")
    if telling.test is not None and report.failures:
        module = inspect.getmodule(scenario)
        name = "" if module is None else module.__name__
        code = replaying_test(report, module=name, scenario=scenario.__name__)
        compile(code, str(telling.test), "exec", dont_inherit=True)
        telling.test.write_text(code, "utf-8")
    if telling.output == "json":
        text = json.dumps(report_fields(report), indent=2)
    elif telling.output == "github":
        subject = inspect.unwrap(scenario)
        file, line = inspect.getsourcefile(subject) or "", inspect.getsourcelines(subject)[1]
        lines = annotation_lines(report, file=os.path.relpath(file), line=line)
        text = "\n".join([*lines, report.summary])
    say(text)


def _explored(simulation: Simulation) -> tuple[SimulationReport, str]:
    report = simulation.explore(progress=Progress(sys.stderr, time.monotonic) if sys.stderr.isatty() else None)
    return report, _text_of(report)


class Progress:
    """Counter of runs and failures on a terminal, written at most once per second."""

    def __init__(self, terminal: TextIO, clock: Callable[[], float]) -> None:
        self._terminal = terminal
        self._clock = clock
        self._written_at = clock()

    def __call__(self, runs: int, failures: int) -> None:
        """Write the numbers if a second has passed."""
        now = self._clock()
        if now - self._written_at >= 1.0:
            self._written_at = now
            self._terminal.write(f"\r{runs} runs, {failures} failures\x1b[K\r")
            self._terminal.flush()


def _text_of(report: SimulationReport) -> str:
    struck = f"faults per write:\n{coverage_text(report.coverage)}" if report.coverage else ""
    wrote = f"writes per reconcile:\n{paths_text(report.paths)}" if report.paths else ""
    return "\n\n".join(filter(None, (str(report), struck, wrote)))


def _only(simulation: Simulation, schedule: Schedule) -> tuple[SimulationReport, str]:
    """Run one schedule, and return the report and its text."""
    run = simulation.run(schedule)
    failure = simulation.judge(schedule, run)
    report = SimulationReport(
        runs=1,
        writes=names_of(simulation.reference.writes),
        failures=() if failure is None else (failure,),
        unused_faults=len(run.unused_faults),
        reference=simulation.reference,
    )
    unused = [f"unused fault: the run had no {write}" for write in run.unused_faults]
    return report, "\n".join(["no failures" if failure is None else str(failure), *unused])
