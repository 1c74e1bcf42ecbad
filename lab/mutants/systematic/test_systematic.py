"""The tool itself: what it seeds, that tests kill what they can tell, and that the list of equivalents holds."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab.mutants.systematic import equivalent, rooms
from lab.mutants.systematic.mutant import mutants

TOY = '''
"""A toy core: it gives out tokens."""

from __future__ import annotations

LIMIT = 2


class Tokens:
    def __init__(self) -> None:
        self.given = 0

    def take(self, *, paused: bool = False) -> bool:
        if self.given < LIMIT and not paused:
            self.given += 1
            return True
        return False
'''

WEAK = """
from toy.tokens import Tokens


def test_it_gives_one() -> None:
    assert Tokens().take() is True
"""

STRONG = """
from toy.tokens import Tokens


def test_it_gives_two_and_no_more() -> None:
    tokens = Tokens()
    assert [tokens.take(), tokens.take(), tokens.take()] == [True, True, False]
    assert tokens.given == 2


def test_it_gives_none_while_paused() -> None:
    assert Tokens().take(paused=True) is False
"""

RUN = """
import json, sys
from pathlib import Path
from lab.mutants.systematic.instrument import Room
from lab.mutants.systematic.report import as_json
from lab.mutants.systematic.run import Plan, run

found = run(Plan(Room(Path("toy").absolute(), "toy", ["tokens.py"]), ["tests"], say=lambda line: None))
Path("found.json").write_text(json.dumps(as_json(found, {})))
"""


def survivors(folder: Path, tests: str) -> tuple[int, list[str]]:
    (folder / "toy").mkdir()
    (folder / "toy" / "__init__.py").write_text("")
    (folder / "toy" / "tokens.py").write_text(TOY)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_tokens.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    path = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(rooms.ROOT)!r}]\n"
    subprocess.run([sys.executable, "-c", path + RUN], cwd=folder, check=True, capture_output=True, timeout=18)
    found = json.loads((folder / "found.json").read_text())
    assert found["broken"] == found["failing_tests"] == []
    return found["total"]["tried"], [each["change"] for each in found["survivors"]]


def test_weak_tests_let_mutants_survive(tmp_path: Path) -> None:
    assert survivors(tmp_path, WEAK) == (
        15,
        [
            "2 -> 3",
            "0 -> 1",
            "self.given < LIMIT and (not paused) -> without self.given < LIMIT",
            "self.given < LIMIT and (not paused) -> without not paused",
            "self.given < LIMIT and (not paused) -> self.given < LIMIT or not paused",
            "self.given < LIMIT -> self.given <= LIMIT",
            "self.given += 1 -> self.given -= 1",
            "self.given += 1 -> removed",
            "1 -> 2",
            "1 -> 0",
            "False -> True",
        ],
    )


def test_strong_tests_kill_all_mutants(tmp_path: Path) -> None:
    assert survivors(tmp_path, STRONG) == (15, [])


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("if a and b: f()", ["without a", "without b", "a or b", "f() -> removed"]),
        ("while a < b: break", ["not a < b", "a <= b", "continue"]),
        ("x = a[1] + 2.5", ["removed", "a[1] - 2.5", "1 -> 2", "1 -> 0", "5.0"]),
        ("return not done", ["return None", "done"]),
        ("raise Wrong(key=key)", ["removed", "without key=key"]),
        ("x = {'a': 1, 'b': c}", ["without 'a'", "without 'b'", "'aX'", "0", "2"]),
        ("x = min(a, b)", ["max(a, b)"]),
        ("x = [e for e in es if e]", ["for e in es"]),
        ("try:\n  f()\nexcept E:\n  g()\nfinally:\n  h()", ["raised on", "without `finally`", "h() -> removed"]),
        ("with suppress(E):\n  f()", ["without `with`"]),
        ("match x:\n  case A() if a: f()\n  case _: g()", ["no case A() no. 0", "no guard at case A() no. 0"]),
    ],
)
def test_statements_have_expected_mutants(statement: str, changes: list[str]) -> None:
    body = statement.replace("\n", "\n    ")
    found = [each.change for each in mutants("m.py", ast.parse(f"def f():\n    {body}\n"))]
    missing = [each for each in changes if not any(each in change for change in found)]
    assert missing == [], found


@pytest.mark.parametrize(
    "statement",
    [
        "_log.info('a line of the log', extra={'seconds': 1})",
        "assert a < b",
        "'''What it does.'''",
        "x: TypeAlias = list[int]",
        "if TYPE_CHECKING:\n  import a",
    ],
)
def test_statements_without_mutants(statement: str) -> None:
    body = statement.replace("\n", "\n    ")
    assert mutants("m.py", ast.parse(f"def f():\n    {body}\n")) == []


def test_list_of_equivalent_mutants_is_up_to_date() -> None:
    assert equivalent.stale(equivalent.read()) == []


def test_stale_entry_is_detected(tmp_path: Path) -> None:
    listed = tmp_path / "list.toml"
    listed.write_text("""["cache/core/freshness.py"."gone.function"]\n"a -> b" = "nobody can tell the two" """)
    assert equivalent.stale(equivalent.read(listed)) == ["cache/core/freshness.py: gone.function: a -> b"]
    listed.write_text("""["cache/core/freshness.py"."gone.function"]\n"a -> b" = "so" """)
    with pytest.raises(ValueError, match="say why"):
        equivalent.read(listed)
