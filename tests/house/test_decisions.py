"""No decision is made from the text of an error: facts are carried in fields, and texts may change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "deltaloop"
_CUTS = frozenset({"startswith", "endswith", "partition", "rpartition", "split", "find", "index", "removeprefix"})

# To parse all of the source would take seconds.
_WORTH_PARSING = re.compile(
    r"(\bin|[=!]=)\s+(str\(|[\w.]+\.message)|(str\(\w+\)|\.message)\s*(\.|[=!]=|\bin\b|\bnot\b)"
)

# Where there is nothing but the text, and why.
EXCEPTIONS = {
    "api/status.py": "older servers say by text alone that a resource version is from the future, as client-go knows",
    "client/core/list_decoding.py": "msgspec says by text alone which field is missing; only the words depend on it",
    "testing/control_plane.py": "the log of a process that is not ours says that a port was taken",
}


def _is_text_of_error(node: ast.expr, caught: frozenset[str]) -> bool:
    """Tell whether an expression is the text of an error, such as ``str(error)`` or ``error.status.message``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
        return isinstance(node.args[0], ast.Name) and node.args[0].id in caught
    return isinstance(node, ast.Attribute) and node.attr == "message" and _root(node) in caught


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def decisions_by_text(source: str) -> Iterator[int]:
    """Give the lines in which the text of an error is searched or taken apart."""
    if not _WORTH_PARSING.search(source):
        return
    tree = ast.parse(source)
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    caught = frozenset(names | {"error", "exc", "failure"})
    for node in ast.walk(tree):
        looked_at: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            looked_at = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CUTS:
            looked_at = [node.func.value]
        yield from (item.lineno for item in looked_at if _is_text_of_error(item, caught))


def test_no_decision_is_made_from_the_text_of_an_error() -> None:
    found = {
        f"{path.relative_to(SOURCE).as_posix()}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in decisions_by_text(path.read_text())
    }
    unexplained = [place for place in sorted(found) if place.rpartition(":")[0] not in EXCEPTIONS]
    assert not unexplained
    assert {place.rpartition(":")[0] for place in found} == set(EXCEPTIONS), "an exception that is none any more"


@pytest.mark.parametrize(
    "code",
    [
        'if " cannot be handled as " not in str(error): pass',
        'why = error.status.message.partition(": ")[2]',
        "try: pass\nexcept ValueError as odd:\n    x = str(odd).startswith('a')",
        'x = "a" == failure.message',
    ],
)
def test_the_search_finds_them(code: str) -> None:
    assert list(decisions_by_text(code))


@pytest.mark.parametrize("code", ["raise ValueError(str(error))", "x = name.partition(':')", "y = message in texts"])
def test_the_search_passes_over_others(code: str) -> None:
    assert not list(decisions_by_text(code))
