"""Chooses the server, and keeps what came of each case for the two columns of ``make -C lab conformance``."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
from tests.conformance.differences import DIFFERENCES
from tests.conformance.target import EmbeddedTarget, RealTarget, Target
from tests.conformance.token_keys import known_keys

REAL = os.environ.get("DELTALOOP_CONFORMANCE", "embedded") == "real"
RESULTS = os.environ.get("DELTALOOP_CONFORMANCE_RESULTS", "")
_counts: Counter[str] = Counter()
_version = ""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conformance(line): the line of the contract that a case checks")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("conformance") is None:
            continue
        if REAL:
            item.add_marker(pytest.mark.real_time)
            # A TLS stream that a case stops to read closes a moment after the case's loop is gone.
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            continue
        reason = DIFFERENCES.get(f"{item.path.stem.removeprefix('test_')}.{item.name}")
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Ignore the same streams if they are closed after the last case."""
    if REAL:
        warnings.filterwarnings("ignore", category=pytest.PytestUnraisableExceptionWarning)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what came of the cases: a known difference is a failure that was expected, and counts as a failure."""
    if "tests/conformance/" not in report.nodeid or not (report.when == "call" or report.failed or report.skipped):
        return
    if hasattr(report, "wasxfail"):
        _counts["listed" if report.skipped else "failed"] += 1
    _counts["failed" if report.failed or hasattr(report, "wasxfail") else report.outcome] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if RESULTS:
        result: dict[str, object] = {name: _counts[name] for name in ("passed", "failed", "skipped", "listed")}
        if _version:
            result["version"] = _version
        Path(RESULTS).write_text(json.dumps(result))


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    global _version  # noqa: PLW0603 - read at the end of the session, when the fixture is gone
    if not REAL:
        yield EmbeddedTarget()
        return
    assets = find_assets()
    assert assets is not None, "no kube-apiserver: run `make -C lab kube`"
    _version = assets.version
    major, minor = _version.removeprefix("v").split(".")[:2]
    keys = tmp_path_factory.mktemp("keys") / "manager.pub"
    keys.write_bytes(known_keys())
    extra = [
        f"--service-account-key-file={keys}",
        "--endpoint-reconciler-type=lease",
        "--feature-gates=ShardedListAndWatch=true",
    ]
    with ControlPlane(assets, extra_arguments=extra) as server:
        yield RealTarget(server, (int(major), int(minor)))
