"""Write the figures of a run between the markers of ``lab/corpus/README.md``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lab.bench.page import fill, table
from lab.corpus.counting import FEW, GROUPS

PAGE: Final = Path("lab/corpus/README.md")
_PROJECT: Final = ("project", "writes", "same verdict", "equal", "mutations", "same verdict", "equal")

Figures = Mapping[str, Any]


def write_page(page: Path, figures: Figures, builtin: Figures) -> None:
    """Put what is in ``build/corpus.json``, and in that of built-in kinds, in its places."""
    of_builtin = {f"built-in-{name}": text for name, text in blocks(builtin).items()}
    page.write_text(fill(page.read_text(), {**blocks(figures), **of_builtin}))


def blocks(figures: Figures) -> dict[str, str]:
    """Return the text of each block."""
    groups = [_group(group, figures[group]) for group in GROUPS]
    return {
        "groups": table(["", "requests", "equal", "same verdict"], groups),
        "projects": table(_PROJECT, [_project(name, read) for name, read in figures["projects"].items()]),
        "reasons": _reasons(figures["differences"]),
    }


def _group(name: str, count: Mapping[str, int]) -> Sequence[str]:
    return (name, f"{count['requests']:,}", _part("equal", count), _part("same_verdict", count))


def _part(name: str, count: Mapping[str, int]) -> str:
    return f"{count[name] / count['requests']:.2%}" if count["requests"] else ""


def _project(name: str, read: Figures) -> list[str]:
    row = [name]
    for group in ("writes", "mutations"):
        count = read[group]
        row += [f"{count['requests']:,}", _part("same_verdict", count), _part("equal", count)]
    return row


def _reasons(differences: Sequence[Mapping[str, Any]]) -> str:
    numbers: Counter[str] = Counter()
    for each in differences:
        few = f"in classes of at most {FEW}, not looked into"
        many = "in larger classes, not looked into"
        numbers[each["explained"] or (few if each["number"] <= FEW else many)] += each["number"]
    return table(["differences", "why"], [(f"{number:,}", reason) for reason, number in numbers.most_common()])
