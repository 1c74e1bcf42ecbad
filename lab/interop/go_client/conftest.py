from __future__ import annotations

import pytest

from lab.interop.go_client.go_modules import run_go


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which published CRDs were tried, and with what outcome."""
    reports = [
        (outcome, str(value))
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in getattr(report, "user_properties", [])
        if name == "published CRDs" and getattr(report, "when", "") == "call"
    ]
    if reports:
        terminalreporter.section("published CRDs")
    for outcome, text in reports:
        terminalreporter.write_line(f"{outcome}: {text}")


@pytest.fixture(scope="session")
def go_modules() -> None:
    """Skip, saying why, where the modules cannot be had."""
    fetched = run_go("mod", "download")
    if fetched.returncode != 0:
        pytest.skip(f"Go's clients: their modules cannot be had: {fetched.stderr.strip()[-300:]}")
