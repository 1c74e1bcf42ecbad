"""No server alone decides how long we wait: its ``Retry-After`` goes through ``pacing.retry_after_delay``."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import deltaloop

SOURCE = Path(deltaloop.__file__).parent
ELSEWHERE = {
    "api/status.py": "where it is read out of the answer",
    "client/core/retry.py": "compares it with the longest that is waited for, and fails beyond",
    "cache/reflector.py": "tells it in the log",
}


def reads(text: str) -> list[int]:
    """Return the lines that read an error's ``retry_after`` and use it as it is."""
    tree = ast.parse(text)
    passed_on = {
        id(part)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for part in (call.func, *(call.args if ast.unparse(call.func).endswith("retry_after_delay") else ()))
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "retry_after" and id(node) not in passed_on
    ]


def test_each_server_delay_is_bounded() -> None:
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if SOURCE / "apiserver" not in path.parents  # it is the one that asks
        and ".retry_after" in (text := path.read_text(encoding="utf-8"))
        and (lines := reads(text))
    }
    assert {*found} == {*ELSEWHERE}, found


@pytest.mark.nightly
@pytest.mark.parametrize("line", ["delay = max(delay, error.retry_after or 0.0)", "await sleep(error.retry_after)"])
def test_seeded_bug_is_detected(line: str) -> None:
    assert reads(line) == [1]
    assert reads("delay = retry_after_delay(error.retry_after)\nwork.retry_after(3.0)") == []
