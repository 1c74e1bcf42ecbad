"""Write the sources of the site: ``docs``, generated reference pages, and pages of the repository's root.

    python -m tools.site.stage

This writes ``build/docs``, which ``mkdocs.yml`` names. It is a separate step instead of a plugin, so that any builder
that reads ``mkdocs.yml`` builds the same site. Links to the README lead to the home page. Other files of the repository
are named without a link.
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
    """Return the page of the site for a file of the repository, or None."""
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    name = target.relative_to(ROOT).as_posix()
    return ELSEWHERE.get(name)


def site_links(text: str, source: Path, staged: str) -> str:
    """Return a page whose links lead to pages of the site.

    Args:
        text: The page.
        source: Path in the repository.
        staged: Path on the site.
    """

    def changed(found: re.Match[str]) -> str:
        words, target, anchor = found["words"], found["target"], found["anchor"] or ""
        path = (source.parent / target).resolve()
        if not path.exists() or not path.is_relative_to(ROOT):
            return found[0]  # the builder reports this link
        page = target_on_site(path)
        if page is None:
            return f"{words} (`{path.relative_to(ROOT).as_posix()}`)" if "`" not in words else words
        return f"[{words}]({os.path.relpath(page, Path(staged).parent)}{anchor})"

    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.DOTALL | re.MULTILINE)
    link = re.compile(r"(?<!!)\[(?P<words>[^\]]+)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)]*)?\)")
    parts[::2] = [link.sub(changed, part) for part in parts[::2]]
    return "".join(parts)


def without_comments(text: str) -> str:
    """Remove comments for the tests."""
    return re.sub(r"^<!-- snippet: .*?-->\n", "", text, flags=re.DOTALL | re.MULTILINE)


def stage() -> list[str]:
    """Write all pages; return their names."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(DOCS, STAGED)
    sources = {path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*.md")}
    sources |= {page: ROOT / name for name, page in ROOT_PAGES.items()}
    for page, source in sources.items():
        (STAGED / page).write_text(site_links(without_comments(source.read_text()), source, page))
    generated = reference.pages()
    for page, text in generated.items():
        path = STAGED / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sorted([*sources, *generated])


def main() -> None:
    """Write all pages and print their number."""
    print(f"{len(stage())} pages are in {STAGED.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
