"""Draw the output of a command as an animated SVG: a terminal that prints the lines with their original timing.

All rows are one column of text behind a window. One animation lifts the column, one step for each line. The file is
therefore small, needs no script, and works as a picture. It begins with the last rows, so that viewers without
animation, and readers who prefer reduced motion, see the result.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

COLUMNS: Final = 106
ROWS: Final = 22
LEAST_STEP: Final = 0.15
"""Seconds between two lines, at least: what came at once is still to be read."""
LONGEST_PAUSE: Final = 1.5
"""Seconds between two lines, at most, however long the wait was."""
RESULT: Final = 4.0
"""Seconds for which the last rows are shown, before the first line and again at the end."""

_ROW_HEIGHT: Final = 18
_LETTER_WIDTH: Final = 8.45
_MARGIN: Final = 14
_BAR_HEIGHT: Final = 30
_STYLE: Final = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre}"
    ".t{fill:#7f8c9f}.server{fill:#82aaff}.you{fill:#ffcb6b}.replica{fill:#c3e88d}.ok{fill:#22da6e}"
    "@media(prefers-reduced-motion:reduce){.rows{animation:none!important}}"
)
_DOTS: Final = "".join(
    f'<circle cx="{x}" cy="15" r="5" fill="{fill}"/>' for x, fill in ((18, "#ff5f57"), (35, "#febc2e"), (52, "#28c840"))
)
_ACTOR: Final = re.compile(r" {2}(server|you|replica|ok)(?:-[0-9]+)? ")


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was printed.

    Attributes:
        at: Seconds after the start.
        text: The line, without its end.
    """

    at: float
    text: str


def draw(lines: Sequence[Line], *, title: str) -> str:
    """Return the SVG of a terminal in which the lines come one after another, again and again.

    Args:
        lines: In the order in which they were printed, one at least.
        title: What stands in the window's bar, such as the command.

    Raises:
        ValueError: If there are no lines.
    """
    if not lines:
        raise ValueError("nothing was printed: there is nothing to draw")
    rows: list[str] = []
    steps: list[tuple[float, int]] = [(RESULT, 0)]
    for line, moment in zip(lines, _moments(lines), strict=True):
        rows += _rows(line.text)
        steps.append((RESULT + moment, len(rows)))
    whole = steps[-1][0] + RESULT
    steps.insert(0, (0.0, len(rows)))
    frames = "".join(f"{100 * at / whole:.2f}%{{transform:translateY({_lift(count)}px)}}" for at, count in steps)
    width, height = round(COLUMNS * _LETTER_WIDTH) + 2 * _MARGIN, ROWS * _ROW_HEIGHT + _BAR_HEIGHT + _MARGIN
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    moving = f".rows{{transform:translateY({_lift(len(rows))}px);animation:play {whole:.2f}s step-end infinite}}"
    name = escape(title)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{name}, recorded">',
            f"<style>{_STYLE}{moving}@keyframes play{{{frames}}}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#0b1622"/>',
            f'{_DOTS}<text x="74" y="20" class="t">{name}</text>',
            f'<svg x="{_MARGIN}" y="{_BAR_HEIGHT}" width="{width - _MARGIN}" height="{ROWS * _ROW_HEIGHT}">',
            '<g class="rows">',
            *(f'<text y="{number * _ROW_HEIGHT - 5}">{row}</text>' for number, row in enumerate(rows, 1) if row),
            "</g></svg></svg>\n",
        ]
    )


def _moments(lines: Sequence[Line]) -> Iterator[float]:
    """Say when each line comes: as it did, but slowly enough to be read, and without long waits."""
    moment, before = LEAST_STEP, lines[0].at
    for line in lines:
        moment += min(max(line.at - before, LEAST_STEP), LONGEST_PAUSE)
        before = line.at
        yield moment


def _lift(count: int) -> int:
    """Say how far down the column stands when that many of its rows have come, in pixels: the last is the lowest."""
    return (ROWS - count) * _ROW_HEIGHT


def _rows(text: str) -> list[str]:
    """Break a line into rows of markup, the actor of the first in its colour."""
    said = _ACTOR.search(text[:30])
    indent = " " * (0 if said is None else said.end() + len(text[said.end() :]) - len(text[said.end() :].lstrip()))
    first, *others = textwrap.wrap(text, COLUMNS, subsequent_indent=indent) or [""]
    return [_coloured(first), *(escape(other) for other in others)]


def _coloured(row: str) -> str:
    found = _ACTOR.search(row[:30])
    if found is None:
        return escape(row)
    start, end = found.start() + 2, found.end() - 1
    actor = f'<tspan class="{found[1]}">{escape(row[start:end])}</tspan>'
    return f'<tspan class="t">{escape(row[:start])}</tspan>{actor}{escape(row[end:])}'
