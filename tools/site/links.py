"""Checks a built site: every link, anchor, picture, style and script of its own is there, and nothing is foreign.

    python -m tools.site.links build/site

Exit code 1 and one line for each that is not. Links to other sites are counted and not followed; pictures, styles and
scripts of other sites are an error, because a page must show without a network.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"img": "src", "script": "src", "link": "href", "source": "src", "object": "data", "iframe": "src"}
_NOT_LOADED = {"canonical", "next", "prev", "edit", "alternate"}


@dataclass
class Page(HTMLParser):
    """What one page offers and asks for."""

    anchors: set[str] = field(default_factory=set[str])
    links: list[str] = field(default_factory=list[str])
    loaded: list[str] = field(default_factory=list[str])
    without_words: int = 0

    def __post_init__(self) -> None:
        """Begin to read."""
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a tag."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "img" and not given.get("alt"):
            self.without_words += 1
        relation = given.get("rel", "")
        if tag in _LOADED and given.get(_LOADED[tag]) and relation not in _NOT_LOADED:
            self.loaded.append(given[_LOADED[tag]])


def check(site: Path) -> tuple[list[str], int, int]:
    """Check a site; return what is wrong, how many links were followed, and how many lead to other sites."""
    site = site.resolve()
    pages: dict[Path, Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = Page()
        pages[path].feed(path.read_text())
    wrong: list[str] = []
    followed = foreign = 0
    for path, page in pages.items():
        where = path.relative_to(site)
        if page.without_words:
            wrong.append(f"{where}: {page.without_words} pictures without words for those who cannot see them")
        for target in [*page.links, *page.loaded]:
            parts = urlsplit(target)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                foreign += 1
                if target in page.loaded:
                    wrong.append(f"{where}: {target} is loaded from elsewhere")
                continue
            followed += 1
            wrong += [f"{where}: {target}: {why}" for why in _problems(path, parts.path, parts.fragment, site, pages)]
    if not pages:
        wrong.append(f"{site}: no page")
    return wrong, followed, foreign


def _problems(path: Path, target: str, fragment: str, site: Path, pages: dict[Path, Page]) -> list[str]:
    if path.name == "404.html":  # is shown at any address, so its links begin at the site's
        target = target.removeprefix("/") or "."
    led = (path.parent / unquote(target)).resolve() if target else path
    if led.is_dir():
        led /= "index.html"
    if not led.is_relative_to(site):
        return ["leads out of the site"]
    if not led.exists():
        return ["is not there"]
    here = pages.get(led)
    if fragment and here is not None and unquote(fragment) not in here.anchors and not fragment.startswith("__"):
        return ["no such anchor"]
    return []


def main() -> int:
    """Check the site that is named; return the exit code."""
    site = Path(sys.argv[1])
    wrong, followed, foreign = check(site)
    print("\n".join([*wrong, f"{site}: {followed} links followed, {len(wrong)} wrong; {foreign} lead elsewhere"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
