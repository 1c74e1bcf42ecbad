"""A test fails for what the code does, not for how busy the machine is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parents[1]
HURRIES = re.compile(
    r"mark\.timeout\((\d+)\)|settings\([^)]*\bdeadline=(?!None\b)|perf_counter\(\)[^\n]*<"
    # A name of a test that has the time in it: each worker that collects it has another one.
    r"|parametrize\([^\n]*gzip\.compress\((?![^\n]*mtime=)"
)


def hurried(source: str, *, limit: float) -> list[str]:
    """Return what fails a test that is merely slow."""
    return [found[0] for found in HURRIES.finditer(source) if found[1] is None or int(found[1]) <= limit]


def test_hypothesis_has_no_deadline() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_only_hanging_tests_are_stopped(pytestconfig: pytest.Config) -> None:
    limit = float(pytestconfig.getini("timeout"))
    assert limit >= 120
    found = {
        str(path.relative_to(TESTS)): lines
        for path in sorted(TESTS.rglob("test_*.py"))
        if path.name != Path(__file__).name and (lines := hurried(path.read_text(encoding="utf-8"), limit=limit))
    }
    assert found == {}, "give it the suite's own time limit; measure the process's own time"


def test_time_limits_in_tests_are_detected() -> None:
    source = "@pytest.mark.timeout(20)\n@settings(deadline=200)\nassert time.perf_counter() - began < 2\n"
    source += "@pytest.mark.parametrize('body', [gzip.compress(b'')])"
    assert len(hurried(source, limit=120)) == 4
    assert hurried("mark.timeout(900) deadline=None renew_deadline=0.3 time.process_time() < 2", limit=120) == []
