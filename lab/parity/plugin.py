"""Fail a run of the whole suite if a test in lab/parity/README.md did not pass: ``-p lab.parity.plugin``."""

from __future__ import annotations

import pytest

from lab.parity.session import EveryNamedTestPasses
from lab.parity.tables import named_tests


def pytest_configure(config: pytest.Config) -> None:
    """Watch the run from the process that sees all of it, not from the workers of pytest-xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(EveryNamedTestPasses(named_tests()), "every named test passes")
