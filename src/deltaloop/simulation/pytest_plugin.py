"""Pytest plugin that runs tests with the fixture ``deltaloop_world`` as scenarios with faults.

    @pytest.mark.simulate(runs=300)
    async def test_nothing_is_lost(deltaloop_world):
        await deltaloop_world.start(reconcile)
        ...

The marker accepts the fields of ``SimulationOptions``. The default is 100 runs. Other fixtures are created once for all
runs. pytest loads this module in all projects, so it imports as little as possible.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from deltaloop.simulation.simulator import Simulation
    from deltaloop.testing.harness import Harness

_FIXTURE: Final = "deltaloop_world"
_MARKER: Final = "simulate"
_REPLAY: Final = "--deltaloop-replay"
_RUNS: Final = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("deltaloop", "Kubernetes controllers")
    group.addoption(
        _REPLAY, metavar="FAULTS", help="run only these faults in each simulation; reports show FAULTS after 'again'"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "simulate(runs=, seconds=, seed=, ...): options for the faults of a test that uses deltaloop_world"
    )


@pytest.fixture
def deltaloop_world(request: pytest.FixtureRequest) -> Harness:
    """Harness for async tests, with a new harness for each run of a simulation.

    Raises:
        pytest.UsageError: If the requesting function is not an async test.
    """
    node: object = request.node
    if not isinstance(node, pytest.Function) or not _is_simulation(node):
        raise pytest.UsageError(f"{_FIXTURE} must be a parameter of an async test, not of another fixture")
    return None  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def _is_simulation(item: pytest.Function) -> bool:
    named = _FIXTURE in inspect.signature(item.obj).parameters
    return named and inspect.iscoroutinefunction(inspect.unwrap(item.obj))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run a test as a simulation, if it requests the fixture."""
    __tracebackhide__ = True
    if _FIXTURE not in pyfuncitem.fixturenames or not _is_simulation(pyfuncitem):
        return None
    function: Callable[..., Awaitable[object]] = pyfuncitem.obj
    names = pyfuncitem._fixtureinfo.argnames  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}

    async def scenario(world: Harness) -> None:
        await function(**{**arguments, _FIXTURE: world})

    told = _told(pyfuncitem, scenario, pyfuncitem.config.getoption(_REPLAY))
    if told:
        pytest.fail(f"{told}\n\n  in one line: pytest '{pyfuncitem.nodeid}' {_REPLAY}=FAULTS", pytrace=False)
    return True


def _simulation_of(
    item: pytest.Function, scenario: Callable[[Harness], Awaitable[object]], seed: int | None
) -> Simulation:
    from deltaloop.simulation.simulator import Simulation, SimulationOptions

    marker = item.get_closest_marker(_MARKER)
    options: dict[str, Any] = {"runs": _RUNS, **({} if marker is None else marker.kwargs)}
    if seed is not None:
        options["seed"] = seed
    try:
        return Simulation(scenario, SimulationOptions(**options))
    except TypeError as error:
        raise pytest.UsageError(f"@pytest.mark.{_MARKER} of {item.nodeid}: {error}") from None


def _told(item: pytest.Function, scenario: Callable[[Harness], Awaitable[object]], replay: str | None) -> str:
    """Run the simulation, and return its problems as text."""
    from deltaloop.simulation.core.schedules import parse_replay
    from deltaloop.simulation.simulator import BrokenReferenceError

    seed, schedule = parse_replay(replay or "")
    simulation = _simulation_of(item, scenario, seed)
    try:
        if replay:
            failure = simulation.replay(schedule)
            return "" if failure is None else str(failure)
        report = simulation.explore()
    except BrokenReferenceError as error:
        return str(error)
    return str(report) if report.failures else ""
