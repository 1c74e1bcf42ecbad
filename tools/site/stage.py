"""Puts together what the site is built from: ``docs/``, reference pages made from the code, and pages of the root.

    python -m tools.site.stage

writes ``build/docs``, which ``mkdocs.yml`` names. Nothing in it is edited or committed. It is a step of its own, not a
plugin, so that any builder that reads ``mkdocs.yml`` builds the same site.

Links of a page that lead out of ``docs/`` lead to where the site has the same: the README is the index, an example has
a page that includes it, and other files of the repository are named without a link.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from tools.site import reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STAGED = ROOT / "build" / "docs"

ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
ELSEWHERE = {"README.md": "index.md", **ROOT_PAGES}


def target_on_site(target: Path) -> str | None:
    """Name the page of the site that stands for a file of the repository; None if there is none."""
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    name = target.relative_to(ROOT).as_posix()
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    if name.startswith("examples/"):
        page = f"examples/{name.split('/')[1].removesuffix('.py').replace('_', '-')}.md"
        return page if (DOCS / page).exists() else None
    return None


def mend_links(text: str, source: Path, staged: str) -> str:
    """Let the links of a page lead to pages of the site.

    Args:
        text: The page.
        source: Where it stands in the repository.
        staged: Where it will stand on the site.
    """

    def mended(found: re.Match[str]) -> str:
        words, target, anchor = found["words"], found["target"], found["anchor"] or ""
        path = (source.parent / target).resolve()
        if not path.exists() or not path.is_relative_to(ROOT):
            return found[0]  # the builder says that it is wrong
        page = target_on_site(path)
        if page is None:
            return f"{words} (`{path.relative_to(ROOT).as_posix()}`)" if "`" not in words else words
        return f"[{words}]({os.path.relpath(page, Path(staged).parent)}{anchor})"

    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.DOTALL | re.MULTILINE)
    link = re.compile(r"(?<!!)\[(?P<words>[^\]]+)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)]*)?\)")
    parts[::2] = [link.sub(mended, part) for part in parts[::2]]
    return "".join(parts)


def without_comments(text: str) -> str:
    """Leave out what only the tests read."""
    return re.sub(r"^<!-- snippet: .*?-->\n", "", text, flags=re.DOTALL | re.MULTILINE)


def stage() -> list[str]:
    """Write everything; return the names of the pages."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(DOCS, STAGED)
    sources = {path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*.md")}
    sources |= {page: ROOT / name for name, page in ROOT_PAGES.items()}
    for page, source in sources.items():
        (STAGED / page).write_text(mend_links(without_comments(source.read_text()), source, page))
    generated = reference.pages()
    for page, text in generated.items():
        path = STAGED / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sorted([*sources, *generated])


def main() -> None:
    """Write everything and say how much that is."""
    print(f"{len(stage())} pages are in {STAGED.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
