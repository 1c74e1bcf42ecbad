"""Fails a run of the whole suite in which a test that the tables name was not collected, or did not pass.

One object, registered by ``lab/parity/plugin.py`` in the process that was started: under pytest-xdist the reports of
all workers come there, too. A run of a part of the suite proves nothing about the rest, and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import pytest


@final
class EveryNamedTestPasses:
    """Collects what passed, and compares it at the end with what the tables name."""

    def __init__(self, wanted: Iterable[str]) -> None:
        """Wait for these tests; an id without parameters stands for all parameters of that test."""
        self._wanted = sorted(set(wanted))
        self._passed: set[str] = set()
        self._others: set[str] = set()
        self._whole = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test, its setup or its teardown went; a skipped test has not passed."""
        if not report.passed:
            self._others |= names_of(report.nodeid)
        elif report.when == "call":
            self._passed |= names_of(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Let a whole run fail that would have passed, or failed, without them."""
        ended = exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        broken_off = session.shouldfail or session.shouldstop  # --exitfirst, --maxfail
        self._whole = ended and not broken_off and is_whole(session.config)
        if self._whole and self.missing():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name them."""
        if self._whole and (missing := self.missing()):
            terminalreporter.section("tests named in lab/parity/README.md that did not pass in this run", red=True)
            terminalreporter.write("".join(f"{test}\n" for test in missing))

    def missing(self) -> list[str]:
        """Return the wanted tests of which none, or not every parameter, has passed so far."""
        return [test for test in self._wanted if test not in self._passed or test in self._others]


def names_of(nodeid: str) -> set[str]:
    """Return the id of a test with and without its parameters, without the group that pytest-xdist appends."""
    whole = (
        nodeid if nodeid.endswith("]") else nodeid.partition("@")[0] if "[" not in nodeid else nodeid.rpartition("@")[0]
    )
    return {whole, whole.partition("[")[0]}


def is_whole(config: pytest.Config) -> bool:
    """Tell whether nothing was left out of a run by what the command line says."""
    chosen = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise", "collectonly")
    return config.args == config.getini("testpaths") and not any(config.getoption(name, None) for name in chosen)
