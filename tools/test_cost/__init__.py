"""A pytest plugin that measures what a test run costs in CPU, and fails a run above a limit.

    make test PYTEST_FLAGS="-p tools.test_cost --cost-limit"

The cost of a run is the CPU time of its process and of all children, divided by the CPU time of a fixed loop in the
same Python. So figures of different machines can be compared.
"""

from __future__ import annotations

import heapq
import resource
import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from typing import Final, final

import pytest

LIMIT: Final = 120.0
"""Most calibration loops that a whole run may cost."""

_SHOWN: Final = 25
_LOOP: Final = "total = 0\nfor number in range(20_000_000): total += number"
_COLLECTION: Final = "(imports and collection)"
_OTHER: Final = "(other: between tests, collection by workers)"


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
    """Measure and report each run."""
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
    """Measures the CPU seconds of each test where it runs, and adds them up where the run was started."""

    def __init__(self, config: pytest.Config) -> None:
        """Measure and report one run."""
        self._limit: float | None = config.getoption("--cost-limit")
        self._reports = not hasattr(config, "workerinput")  # what only the workers of pytest-xdist have
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._before = 0.0
        self._total = self._loop = 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Note what imports and collection cost in this process."""
        self._seconds[_COLLECTION] = cpu_seconds()

    def pytest_runtest_logstart(self) -> None:
        """Begin to measure a test."""
        self._before = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the CPU seconds of a test's phase into its report, in which they come to the process that was started."""
        report = yield
        before, self._before = self._before, cpu_seconds()
        vars(report)["cpu_seconds"] = self._before - before
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the phase of a test."""
        self._seconds[report.nodeid] += vars(report).get("cpu_seconds", 0.0)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let a run that would have passed fail above the limit."""
        if not self._reports:
            return
        self._total = cpu_seconds()
        self._seconds[_OTHER] = self._total - sum(self._seconds.values())
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
        total = f"{self._total:.0f} CPU s, calibration loop {self._loop:.2f} s"
        terminalreporter.line(f"cost {self.cost:.0f} ({total}{limit})", red=failed, bold=True)

    @property
    def cost(self) -> float:
        """Calibration loops that the run costs."""
        return self._total / self._loop


def _table(seconds: Mapping[str, float]) -> str:
    most = heapq.nlargest(_SHOWN, seconds, key=seconds.__getitem__)
    return "\n".join(f"{seconds[name]:8.2f}  {name}" for name in most)
