"""Old names are found in the syntax of a program, and every new one is there."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.public_names import homes, packages

from deltaloop.renamed.__main__ import main
from deltaloop.renamed.finding import OldName, find, find_in_markdown, new_name
from deltaloop.renamed.names import GONE, KEYWORDS, METHODS, MOVED, RENAMED

ROOT = Path(__file__).parents[2]

PROGRAM = '''\
import deltaloop
import deltaloop as dl
import deltaloop.client.conditions
from deltaloop import GenerationChanged, Manager
from deltaloop import NotFreshError as Stale, cache
from deltaloop.client import conditions
from deltaloop.workqueue import (
    TerminalError,
    WorkQueue,
)


def build(dl_like, sizes: "dl.And"):
    """dl.And and deltaloop.And are words here."""
    both = dl.And(GenerationChanged(), deltaloop.Not(dl.predicates.Where(bool)))
    waiting = deltaloop.client.conditions.ready()
    other = conditions.created()
    raise cache.NotFreshError(dl_like.And, dl.Manager, Stale, TerminalError, both, waiting, other)
'''


def test_old_names_are_found_where_they_are_used() -> None:
    assert find(PROGRAM) == [
        OldName(3, "deltaloop.client.conditions", "deltaloop.wait"),
        OldName(4, "deltaloop.GenerationChanged", "deltaloop.predicates.GenerationChanged"),
        OldName(5, "deltaloop.NotFreshError", "deltaloop.errors.NotFreshError"),
        OldName(6, "deltaloop.client.conditions", "deltaloop.wait"),
        OldName(8, "deltaloop.workqueue.TerminalError", "deltaloop.errors.TerminalError"),
        OldName(15, "deltaloop.Not", "deltaloop.predicates.Not"),
        OldName(15, "dl.And", "dl.predicates.And"),
        OldName(16, "deltaloop.client.conditions.ready", "deltaloop.wait.ready"),
        OldName(18, "cache.NotFreshError", "deltaloop.errors.NotFreshError"),
    ]


def test_other_packages_and_relative_imports_are_left_alone() -> None:
    assert find("from .deltaloop import And\nfrom other import And\nimport other as dl\ndl.And, And\n") == []
    assert find("from .deltaloop import cache\ncache.NotFreshError\n") == []
    assert find("import deltaloops as dl\nfrom deltaloops import And\ndl.And\n") == []


def test_pages_are_read_by_their_fenced_python() -> None:
    inside = "- in a list\n\n  ```python\n  x = dl.Or\n  ```\n"
    page = f"`dl.And`\n\n```python\ndl.And(1)\n```\n{inside}```python\nno python (\n```\n"
    assert find_in_markdown(page) == [
        OldName(4, "dl.And", "dl.predicates.And"),
        OldName(9, "dl.Or", "dl.predicates.Or"),
    ]


def there(dotted: str) -> bool:
    """Tell whether a dotted name can be imported."""
    if importlib.util.find_spec(dotted.rpartition(".")[0]) is None:
        return False
    module, name = dotted.rsplit(".", 1)
    return hasattr(importlib.import_module(module), name) or importlib.util.find_spec(dotted) is not None


def test_every_new_name_is_there_and_no_old_one() -> None:
    olds = [f"{home}.{name}" for home, name in MOVED] + list(RENAMED)
    assert len(olds) > 180
    for old in olds:
        new = new_name(old)
        assert there(new), f"{old} leads to {new}"
        module, name = old.rsplit(".", 1)
        assert module not in packages() or name not in homes(module), f"{old} is still there"
        assert new_name(new) == new


def test_keywords_are_found_at_their_calls_and_what_is_gone_says_why() -> None:
    program = "from deltaloop.cache import Reaction as R\nfrom deltaloop import workqueue\n"
    program += "R(place=1, operation=2)\ndict(place=1)\nworkqueue.NoMetrics\n"
    program += "await_me = ctx.client.get(POD, max_staleness=5)\nctx.client.ensure_finalizer(obj)\n"
    assert find(program) == [
        OldName(3, "place=", "operation="),
        OldName(5, "workqueue.NoMetrics", GONE["deltaloop.workqueue.NoMetrics"]),
        OldName(6, "max_staleness=", "with_max_staleness(...) before the verb"),
        OldName(7, ".ensure_finalizer", "add_finalizer"),
    ]
    for old in GONE:
        assert not there(old), old


def test_keywords_and_methods_are_gone() -> None:
    for called, keyword in KEYWORDS:
        assert called.startswith(".") or there(called), called
        assert keyword
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py") if "renamed" not in path.parts)
    for method in METHODS:
        assert not re.search(rf"def {method}\b", source), method


def test_the_changelog_names_every_move() -> None:
    told = (ROOT / "CHANGELOG.md").read_text()
    names = {name for _, name in MOVED} | {old.rpartition(".")[2] for old in [*RENAMED, *GONE]} | set(METHODS)
    assert sorted(name for name in names if not re.search(rf"\b{name}\b", told)) == []


@pytest.mark.parametrize("folder", ["docs", "examples", "bench", "tools", "README.md"])
def test_no_page_or_example_uses_an_old_name(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(ROOT / folder)]) == 0, capsys.readouterr().out


def test_as_a_command(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("import deltaloop as dl\ndl.And()\n")
    (tmp_path / "broken.py").write_text("def (\n")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "hidden.py").write_text("import deltaloop as dl\ndl.Or()\n")
    command = [sys.executable, "-m", "deltaloop.renamed", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == f"{tmp_path / 'old.py'}:2: dl.And is now dl.predicates.And\n1 old name\n"
    assert done.stderr.startswith(f"{tmp_path / 'broken.py'}:1: left out: ")


def test_what_cannot_be_looked_at_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["no-such-folder"]) == 2
    assert "not there: no-such-folder" in capsys.readouterr().err
