"""Each check of files can fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.trust import checks

BAD = """
on: {pull_request_target: {}}
permissions: {contents: write}
jobs:
  a:
    permissions: {id-token: write}
    steps:
    - uses: actions/checkout@v4
    - run: echo ${{ github.event.issue.title }} ${{ secrets.KEY }}
    - run: pip install something
"""


@pytest.mark.parametrize(
    ("check", "count"), [(checks.pinned, 2), (checks.dangerous_workflows, 3), (checks.permissions, 2)]
)
def test_bad_workflow_is_found(
    check: Callable[[], checks.Result], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check()[0] == []
    (tmp_path / "bad.yaml").write_text(BAD)
    monkeypatch.setattr(checks, "WORKFLOWS", [tmp_path / "bad.yaml"])
    problems, _ = check()
    assert len(problems) == count, problems


@pytest.mark.parametrize("check", [checks.binaries, checks.licenses, checks.static_analysis, checks.tests_in_ci])
def test_repository_passes(check: Callable[[], checks.Result]) -> None:
    assert check()[0] == []


def test_package_without_accepted_license_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "TOOLS", frozenset[str]())
    assert checks.licenses()[0] == ["codespell has the license GPL-2.0-only"]
