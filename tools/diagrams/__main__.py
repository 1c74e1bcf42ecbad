"""Writes or checks the pictures and the tables; see the package."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.diagrams.draw import block, svg
from tools.diagrams.machines import all_diagrams
from tools.diagrams.model import Diagram

CONCEPTS = Path(__file__).parents[2] / "docs" / "concepts"


def wanted(diagrams: list[Diagram]) -> dict[Path, str]:
    """Return what each file should hold.

    Raises:
        ValueError: If a page has no place for its diagram, or a place for one that there is not.
    """
    files: dict[Path, str] = {}
    for diagram in diagrams:
        files[CONCEPTS / "diagrams" / f"{diagram.name}.svg"] = svg(diagram)
        page = CONCEPTS / f"{diagram.page}.md"
        text = files.get(page) or page.read_text()
        begin, end = f"<!-- diagram: {diagram.name} -->", "<!-- end of diagram -->"
        if text.count(begin) != 1:
            raise ValueError(f"{page.name} has no place, or more than one, for the diagram {diagram.name}")
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        files[page] = f"{before}{begin}\n{block(diagram)}\n{end}{after}"
    known = {diagram.name for diagram in diagrams}
    for page in CONCEPTS.glob("*.md"):
        for name in re.findall(r"<!-- diagram: (.*?) -->", page.read_text()):
            if name not in known:
                raise ValueError(f"{page.name} asks for a diagram that nobody draws: {name}")
    return files


def stale(files: dict[Path, str]) -> list[str]:
    """Return the names of the files that are not as they should be, and of pictures that nobody draws any more."""
    present = set((CONCEPTS / "diagrams").glob("*.svg"))
    differ = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    return sorted(path.name for path in {*differ, *(present - set(files))})


def main() -> int:
    """Write everything, or only say what would be written; return the exit code."""
    files = wanted(all_diagrams())
    names = stale(files)
    if "--check" in sys.argv[1:]:
        if names:
            print("not what the code is (make diagrams writes them):", *names, sep="\n  ")
        return 1 if names else 0
    (CONCEPTS / "diagrams").mkdir(exist_ok=True)
    for path, text in files.items():
        path.write_text(text)
    for left in set((CONCEPTS / "diagrams").glob("*.svg")) - set(files):
        left.unlink()
    print("\n".join(names) if names else "nothing has changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
