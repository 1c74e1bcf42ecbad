"""Each page's snippets do what the page says; a snippet that does not is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.console import LANGUAGES, commands, simple_commands
from tests.docs.running import open_page
from tests.docs.snippets import Block, blocks

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(str(path.relative_to(ROOT)) for folder in ("docs", "internals") for path in (ROOT / folder).rglob("*.md")),
]
TESTS = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]


@pytest.mark.real_time
@pytest.mark.parametrize("page", PAGES)
def test_each_snippet_runs(page: str, tmp_path: Path) -> None:
    found = blocks(page, (ROOT / page).read_text())
    if not any(block.language != "text" for block in found):
        return
    with open_page(page, tmp_path) as running:
        for block in found:
            running.run(block)


WIDEST = 76
"""Columns of code that a page can show next to the navigation."""


def all_blocks() -> Iterator[Block]:
    for page in PAGES:
        yield from blocks(page, (ROOT / page).read_text())


def test_code_fits_the_page() -> None:
    shown = [block for block in all_blocks() if not block.hidden and not block.page.startswith("internals/")]
    lines = [(block, line) for block in shown for line in block.text.splitlines()]
    assert [f"{block.where}: {line}" for block, line in lines if len(line.expandtabs(4)) > WIDEST] == []


def test_snippets_of_other_tests_are_referenced() -> None:
    for block in all_blocks():
        if block.ask.named:
            comment = f"snippet: {block.ask.named} -->"
            assert any(comment in text for text in TESTS), f"{block.where}: no test looks for it"


def not_installed(page: str, text: str) -> list[str]:
    """List the programs of Python packages that a page runs before it has installed them."""
    installed: set[str] = set()
    missing: list[str] = []
    for block in blocks(page, text):
        if block.language not in LANGUAGES:
            continue
        for command in (words for line in commands(block.language, block.text) for words in simple_commands(line)):
            if command[:2] == ["pip", "install"]:
                installed.update(command[2:])
            elif command[:1] == ["pytest"] and "pytest" not in installed:
                missing.append(f"{block.where}: pytest")
    return missing


def test_page_that_runs_pytest_installs_it() -> None:
    assert [missing for page in PAGES for missing in not_installed(page, (ROOT / page).read_text())] == []


def test_page_without_pytest_install_is_detected() -> None:
    page = "```sh\npip install 'deltaloop[cli]'{}\n```\n\n```sh\npytest -k one\n```\n"
    assert not_installed("page.md", page.format(" pytest")) == []
    assert not_installed("page.md", page.format("")) == ["page.md:6: pytest"]
