"""``deltaloop simulate``: runs a module's scenario under faults, and prints what goes wrong."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Final, cast

from deltaloop.cli.load_controllers import LoadError, import_module, named_object
from deltaloop.simulation import Schedule, Simulation, SimulationOptions
from deltaloop.simulation.simulator import Scenario

_HASH_SEED: Final = "PYTHONHASHSEED"
_DEFAULT: Final = "scenario"


def with_fixed_hash_seed(environment: Mapping[str, str], *, replace_process: Callable[..., object] = os.execve) -> None:
    """Start this process anew with a fixed hash seed, unless it has one: it decides in which order sets are walked.

    Args:
        environment: Of this process.
        replace_process: Puts another program in the place of this one.
    """
    if environment.get(_HASH_SEED, "random") == "random":
        replace_process(sys.executable, sys.orig_argv, {**environment, _HASH_SEED: "0"})


def load_scenario(target: str) -> Scenario:
    """Import a module and return its scenario.

    Args:
        target: ``package.module`` or ``path/to/file.py``, whose scenario has the name ``scenario``; or ``module:name``.

    Raises:
        LoadError: If there is none, or it is no ``async def`` with one parameter.
    """
    name, colon, attribute = target.partition(":")
    if not name or (colon and not attribute):
        raise LoadError(target, "write MODULE or MODULE:SCENARIO, such as test_operator.py:scenario")
    module = import_module(target, name)
    if not colon and not hasattr(module, _DEFAULT):
        raise LoadError(target, f"module {module.__name__} has no {_DEFAULT!r}{_others(module)}")
    found = named_object(target, module, attribute or _DEFAULT)
    if not inspect.iscoroutinefunction(found) or len(inspect.signature(found).parameters) != 1:
        problem = f"{attribute or _DEFAULT} is no scenario, which is: async def {_DEFAULT}(world: Harness) -> None"
        raise LoadError(target, problem)
    return cast("Scenario", found)


def _others(module: ModuleType) -> str:
    """Name what may be meant."""
    names = [name for name, value in vars(module).items() if inspect.iscoroutinefunction(value)]
    return f"; write MODULE:SCENARIO, with one of {', '.join(sorted(names))}" if names else ""


def simulate(
    scenario: Scenario, options: SimulationOptions, replay: Schedule | None, say: Callable[[str], None]
) -> bool:
    """Run a scenario, say what was found, and tell whether nothing is wrong.

    Args:
        scenario: What to run.
        options: Seed and budget.
        replay: The faults of the only run; None is to search.
        say: Prints a line.

    Raises:
        BrokenReferenceError: If the scenario goes wrong without any fault.
    """
    simulation = Simulation(scenario, options)
    if replay is None:
        report = simulation.explore()
        say(str(report))
        return not report.failures
    run = simulation.run(replay)
    failure = simulation.judge(replay, run)
    say("nothing is wrong" if failure is None else str(failure))
    for write in run.unstruck:
        say(f"there was no {write} to strike")
    return failure is None
