"""No assertion stands where its failure would go unseen."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def swallowed(source: str) -> list[int]:
    """Lines of assertions inside ``with work:``: a queue takes an error there for a failed run, and tries it again."""
    return [
        inner.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.With | ast.AsyncWith) and any(_is_work(item.context_expr) for item in node.items)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Assert)
    ]


def _is_work(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text == "work" or "get_work(" in text


def test_no_test_asserts_inside_work_block() -> None:
    found = {str(path.relative_to(TESTS)): swallowed(path.read_text()) for path in TESTS.rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_assert_inside_work_block_is_detected() -> None:
    source = "async with await queue.get_work() as work:\n  assert 1\nwith work:\n  assert 2\nwith other:\n  assert 3\n"
    assert swallowed(source) == [2, 4]
