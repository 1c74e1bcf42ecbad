"""Writes or checks the pictures and the tables; see the package."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.diagrams import cores
from tools.diagrams.draw import block, svg, table_block
from tools.diagrams.machines import all_diagrams, all_tables
from tools.diagrams.model import Diagram, Table

PAGES = Path(__file__).parents[2] / "internals" / "machines"


def wanted(diagrams: list[Diagram], tables: list[Table]) -> dict[Path, str]:
    """Return what each file should hold.

    Raises:
        ValueError: If a page has no place for its diagram or table, or a place for one that there is not, or if no page
            names some core.
    """
    files: dict[Path, str] = {path: path.read_text() for path in PAGES.glob("*.md")}
    blocks = [(diagram.page, "diagram", diagram.name, block(diagram)) for diagram in diagrams]
    blocks += [(table.page, "table", table.name, table_block(table)) for table in tables]
    for name, what, which, text in blocks:
        page = PAGES / f"{name}.md"
        files[page] = _with_block(page.name, files[page], what, which, text)
    known = {(what, which) for _, what, which, _ in blocks}
    for page, text in files.items():
        for what, which in re.findall(r"<!-- (diagram|table): (.*?) -->", text):
            if (what, which) not in known:
                raise ValueError(f"{page.name} asks for a {what} that nobody draws: {which}")
    missing = cores.without_page([*files.values()], cores.all_cores())
    if missing:
        raise ValueError(f"no page of internals/machines names {', '.join(missing)}")
    return {**files, **{PAGES / "diagrams" / f"{diagram.name}.svg": svg(diagram) for diagram in diagrams}}


def _with_block(page: str, text: str, what: str, which: str, block_text: str) -> str:
    begin, end = f"<!-- {what}: {which} -->", f"<!-- end of {what} -->"
    if text.count(begin) != 1:
        raise ValueError(f"{page} has no place, or more than one, for the {what} {which}")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{block_text}\n{end}{after}"


def stale(files: dict[Path, str]) -> list[str]:
    """Return the names of the files that are not as they should be, and of pictures that nobody draws any more."""
    present = set((PAGES / "diagrams").glob("*.svg"))
    differ = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    return sorted(path.name for path in {*differ, *(present - set(files))})


def main() -> int:
    """Write everything, or only say what would be written; return the exit code."""
    files = wanted(all_diagrams(), all_tables())
    names = stale(files)
    if "--check" in sys.argv[1:]:
        if names:
            print("not what the code is (make generate writes them):", *names, sep="\n  ")
        return 1 if names else 0
    (PAGES / "diagrams").mkdir(exist_ok=True)
    for path, text in files.items():
        path.write_text(text)
    for left in set((PAGES / "diagrams").glob("*.svg")) - set(files):
        left.unlink()
    print("\n".join(names) if names else "nothing has changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
