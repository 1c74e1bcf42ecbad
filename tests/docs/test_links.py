"""Links between pages lead to existing files and headings. ``make docs`` checks the links of the built site."""

from __future__ import annotations

import re
from pathlib import Path

from tools.site import reference

from tests.docs.test_snippets import PAGES

ROOT = Path(__file__).parents[2]
GENERATED = reference.pages()
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


def text_of(target: Path) -> str | None:
    """Return the text of a page, which may be generated with the site; None if it does not exist."""
    if target.is_relative_to(ROOT / "docs"):
        generated = GENERATED.get(target.relative_to(ROOT / "docs").as_posix())
        if generated is not None:
            return generated
    if target.suffix == ".md" and target.is_file():
        return target.read_text()
    return "" if target.exists() else None


def wrong_links(page: Path, text: str) -> list[str]:
    """List a page's links whose file or heading does not exist."""
    wrong: list[str] = []
    for link in links(text):
        name, _, fragment = link.partition("#")
        there = text_of((page.parent / name).resolve()) if name else text
        if there is None or (fragment and fragment not in anchors(there)):
            wrong.append(link)
    return wrong


def wrong_titles(page: Path, text: str) -> list[str]:
    """List the links of "See also" whose text is not the title of their target."""
    wrong: list[str] = []
    for paragraph in re.findall(r"^\*\*See also:\*\* (.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL):
        for words, link in re.findall(r"\[([^\]]+)\]\(([^)]+)\)", paragraph):
            name, _, fragment = link.partition("#")
            there = text_of((page.parent / name).resolve()) or ""
            headings = _HEADING.findall(_FENCED.sub("", there))
            titles = headings[:1] + [each for each in headings if fragment and fragment in anchors(f"# {each}")]
            if " ".join(words.split()) not in titles:
                wrong.append(f"{words}: {titles}")
    return wrong


def test_links_are_valid() -> None:
    assert {page: wrong for page in PAGES if (wrong := wrong_links(ROOT / page, (ROOT / page).read_text()))} == {}


def test_see_also_links_have_page_titles() -> None:
    assert {page: wrong for page in PAGES if (wrong := wrong_titles(ROOT / page, (ROOT / page).read_text()))} == {}


def test_wrong_link_is_detected() -> None:
    page = ROOT / "docs" / "index.md"
    text = "# A page, of `ours`\n[a](#a-page-of-ours) [b](install.md) [c](https://example.com) `[d](none.md)`\n"
    assert wrong_links(page, text) == []
    assert wrong_links(page, text + "[e](none.md) [f](#none) [g](install.md#none)\n") == [
        "none.md",
        "#none",
        "install.md#none",
    ]
    assert wrong_links(page, "[a](reference/command-line.md#deltaloop-run) [b](reference/command-line.md#none)") == [
        "reference/command-line.md#none"
    ]


def test_wrong_title_is_detected() -> None:
    page = ROOT / "docs" / "index.md"
    text = "**See also:** [Install deltaloop](install.md), [Install](install.md),\n[Extras](install.md#choose-extras)\n"
    assert wrong_titles(page, text) == [
        "Install: ['Install deltaloop']",
        "Extras: ['Install deltaloop', 'Choose extras']",
    ]
