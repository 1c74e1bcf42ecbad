"""The commands of the README exist, and all pages agree on the installation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_make_targets_exist() -> None:
    for folder, target in set(
        re.findall(r"\bmake (?:-C (lab) )?([a-z-]+)", README + (ROOT / "CONTRIBUTING.md").read_text())
    ):
        makefile = (ROOT / folder / "Makefile").read_text()
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_pages_agree_on_package_index() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("Containerfile")]
    texts = {str(each.relative_to(ROOT)): " ".join(each.read_text().split("\n# ")) for each in pages}
    without = {name for name, text in texts.items() if re.search(r"[Nn]o version is on a package index yet", text)}
    # A sentence may name an extra in code, for readers who have installed the package.
    from_it = {
        name
        for name, text in texts.items()
        if re.search(r"^ *(?:RUN )?pip install [^\n]*(?<![/\w])deltaloop\b(?!-)", text, re.MULTILINE)
    }
    assert not (without and from_it)
    assert "README.md" in without | from_it
