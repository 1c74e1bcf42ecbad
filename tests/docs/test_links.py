"""Links between pages lead to files and headings that are there; ``make docs`` looks at those of the built site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_snippets import PAGES

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"(?<![!\w])\[[^\]\n]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def links(text: str) -> list[str]:
    """List where a page's links lead to, without those to other sites, and what only looks like one in code."""
    prose = re.sub(r"`[^`]+`", "", _FENCED.sub("", text))
    return [link for link in _LINK.findall(prose) if not re.match(r"[a-z]+:", link)]


def anchors(text: str) -> set[str]:
    """Return the names of a page's headings, as GitHub and the site make them."""
    headings = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found) for found in _HEADING.findall(_FENCED.sub("", text))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def wrong_links(page: Path, text: str) -> list[str]:
    """List a page's links that lead nowhere; pages of the reference are made with the site."""
    wrong: list[str] = []
    for link in links(text):
        name, _, fragment = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        there = text if target == page else target.read_text() if target.suffix == ".md" and target.is_file() else ""
        if name.startswith("reference/"):
            continue
        if not target.exists() or (fragment and fragment not in anchors(there)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    assert wrong_links(path, path.read_text()) == []


def test_a_link_that_does_not_is_found() -> None:
    page = ROOT / "docs" / "index.md"
    text = "# A page, of `ours`\n[a](#a-page-of-ours) [b](runtime.md) [c](https://example.com) `[d](none.md)`\n"
    assert wrong_links(page, text) == []
    assert wrong_links(page, text + "[e](none.md) [f](#none) [g](runtime.md#none)\n") == [
        "none.md",
        "#none",
        "runtime.md#none",
    ]
