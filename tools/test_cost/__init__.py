"""A pytest plugin that measures what a test run costs in CPU, and fails a run above a limit.

    make test PYTEST_FLAGS="-p tools.test_cost --cost-limit"

The cost of a run is the CPU time of its processes (with pytest-xdist: of all workers) and of their children, divided by
the CPU time of a fixed loop in the same Python. So figures of different machines can be compared.
"""

from __future__ import annotations

import heapq
import resource
import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from typing import Any, Final, final

import pytest

LIMIT: Final = 120.0
"""Most calibration loops that a whole run may cost."""

_SHOWN: Final = 25
_LOOP: Final = "total = 0\nfor number in range(20_000_000): total += number"
_COLLECTION: Final = "(imports and collection)"
_OTHER: Final = "(between tests)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the limit: absent, the default one, or a number."""
    parser.getgroup("cost").addoption(
        "--cost-limit",
        type=float,
        nargs="?",
        const=LIMIT,
        metavar="LOOPS",
        help=f"fail a run that costs more CPU than this many calibration loops (default: {LIMIT:g})",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Measure in the processes that run tests, and report in the one that was started."""
    config.pluginmanager.register(CostMeter(config), "cost meter")


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def calibration_seconds() -> float:
    """Return the CPU seconds of the calibration loop."""
    before = time.process_time()
    exec(compile(_LOOP, "<calibration>", "exec"), {})  # noqa: S102 - global names, as in python -c
    return time.process_time() - before


@final
class CostMeter:
    """Measures CPU seconds by test id; a worker of pytest-xdist sends them to the process that started it."""

    def __init__(self, config: pytest.Config) -> None:
        """Measure and report one run."""
        self._output: dict[str, Any] | None = getattr(config, "workeroutput", None)
        self._limit: float | None = config.getoption("--cost-limit")
        self._distributed = bool(config.getoption("numprocesses", None))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._loop = 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Note what imports and collection cost."""
        self._seconds[_COLLECTION] += cpu_seconds()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure one test with its fixtures."""
        before = cpu_seconds()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] += cpu_seconds() - before

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker has measured."""
        for test, seconds in getattr(node, "workeroutput", {}).get("test_cost", {}).items():
            self._seconds[test] += seconds

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let a run that would have passed fail above the limit."""
        if not self._distributed or self._output is not None:
            self._seconds[_OTHER] += cpu_seconds() - sum(self._seconds.values())
        if self._output is not None:
            self._output["test_cost"] = dict(self._seconds)
            return
        self._loop = calibration_seconds()
        if self._limit is not None and self.cost > self._limit and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the most expensive files and tests, and the cost of the run."""
        files: defaultdict[str, float] = defaultdict(float)
        for test, seconds in self._seconds.items():
            files[test.partition("::")[0]] += seconds
        terminalreporter.section("CPU seconds of files and of tests")
        terminalreporter.line(f"{_table(files)}\n\n{_table(self._seconds)}\n")
        failed = self._limit is not None and self.cost > self._limit
        limit = "" if self._limit is None else f", limit {self._limit:g}"
        total = f"{sum(self._seconds.values()):.0f} CPU s, calibration loop {self._loop:.2f} s"
        terminalreporter.line(f"cost {self.cost:.0f} ({total}{limit})", red=failed, bold=True)

    @property
    def cost(self) -> float:
        """Calibration loops that the run costs."""
        return sum(self._seconds.values()) / self._loop


def _table(seconds: Mapping[str, float]) -> str:
    most = heapq.nlargest(_SHOWN, seconds, key=seconds.__getitem__)
    return "\n".join(f"{seconds[name]:8.2f}  {name}" for name in most)
