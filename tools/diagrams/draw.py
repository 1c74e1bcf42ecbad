"""Draws a diagram as an SVG file: states in one column, arrows beside it, down on the right and up on the left.

One column, so that it can be read on a telephone. An arrow bears a number; the table below the picture says what it
stands for, in words. No library is asked: the layout is this page, and the same machine always gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from tools.diagrams.model import Diagram, Table

BOX_WIDTH: Final = 210
LINE_HEIGHT: Final = 17
LETTERS: Final = 26
GAP: Final = 30
LANE: Final = 24
PORT: Final = 13
CORNER: Final = 6
MARGIN: Final = 14

STYLE: Final = (
    "text{font:14px system-ui,sans-serif;fill:#1d2733}"
    ".n{font-size:11px;font-weight:600}"
    ".s{fill:#eef3fb;stroke:#3b5b92;stroke-width:1.4}"
    ".f{fill:#dfeadf}"
    ".a{fill:none;stroke:#3b5b92;stroke-width:1.3}"
    ".b{fill:#fff;stroke:#3b5b92;stroke-width:1}"
)

ARROW_HEAD: Final = (
    '<defs><marker id="h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#3b5b92"/></marker></defs>'
)


@dataclass(slots=True)
class _Box:
    lines: list[str]
    top: float = 0.0
    height: float = 0.0


@dataclass(slots=True)
class _Arrow:
    number: int
    start: int
    end: int
    lane: int = 0
    leave: float = 0.0
    arrive: float = 0.0

    @property
    def down(self) -> bool:
        return self.end > self.start

    @property
    def span(self) -> tuple[int, int]:
        return min(self.start, self.end), max(self.start, self.end)


def _wrap(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= LETTERS:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _lanes(arrows: list[_Arrow]) -> int:
    """Give each arrow a lane, short ones near the boxes; arrows that pass each other have different ones."""
    taken: list[list[tuple[int, int]]] = []
    for arrow in sorted(arrows, key=lambda each: (each.span[1] - each.span[0], each.number)):
        low, high = arrow.span
        free = (all(high <= first or last <= low for first, last in spans) for spans in taken)
        arrow.lane = next((lane for lane, is_free in enumerate(free) if is_free), len(taken))
        if arrow.lane == len(taken):
            taken.append([])
        taken[arrow.lane].append((low, high))
    return len(taken)


def _place(boxes: list[_Box], arrows: list[_Arrow]) -> float:
    """Give boxes their heights and arrows their places at the boxes; return how high the picture is."""
    top = float(MARGIN)
    for number, box in enumerate(boxes):
        ports = max(
            sum(number in (arrow.start, arrow.end) for arrow in arrows if arrow.down is side) for side in (True, False)
        )
        box.top = top
        box.height = max(len(box.lines) * LINE_HEIGHT + 14, (ports + 1) * PORT)
        top += box.height + GAP
        for side in (True, False):
            here = [arrow for arrow in arrows if arrow.down is side and number in (arrow.start, arrow.end)]
            here.sort(key=lambda arrow: _port_order(arrow, number))
            for place, arrow in enumerate(here, start=1):
                height = box.top + box.height * place / (len(here) + 1)
                if arrow.start == number:
                    arrow.leave = height
                else:
                    arrow.arrive = height
    return top - GAP + MARGIN


def _port_order(arrow: _Arrow, number: int) -> tuple[int, int]:
    """Order arrows at a box from top to bottom: those from and to above first, so that lines cross little."""
    other = arrow.end if arrow.start == number else arrow.start
    return (0, -arrow.lane) if other < number else (1, arrow.lane)


def _path(arrow: _Arrow, left: float) -> tuple[str, float, float]:
    sign = 1 if arrow.down else -1
    edge = left + BOX_WIDTH if arrow.down else left
    lane = edge + sign * (LANE * (arrow.lane + 1))
    turn = CORNER * (1 if arrow.arrive > arrow.leave else -1)
    path = (
        f"M{edge:g} {arrow.leave:.1f}H{lane - sign * CORNER:g}"
        f"Q{lane:g} {arrow.leave:.1f} {lane:g} {arrow.leave + turn:.1f}"
        f"V{arrow.arrive - turn:.1f}Q{lane:g} {arrow.arrive:.1f} {lane - sign * CORNER:g} {arrow.arrive:.1f}"
        f"H{edge + sign * 2:g}"
    )
    return path, lane, (arrow.leave + arrow.arrive) / 2


def svg(diagram: Diagram) -> str:
    """Return the picture."""
    place = {state: number for number, state in enumerate(diagram.states)}
    arrows = [
        _Arrow(number, place[before], place[after]) for number, (before, after) in enumerate(diagram.arrows(), start=1)
    ]
    right = _lanes([arrow for arrow in arrows if arrow.down])
    lefts = _lanes([arrow for arrow in arrows if not arrow.down])
    boxes = [_Box(_wrap(state)) for state in diagram.states]
    height = _place(boxes, arrows)
    left = MARGIN + LANE * lefts + (10 if lefts else 0)
    width = left + BOX_WIDTH + LANE * right + (10 if right else 0) + MARGIN
    size = f"{width:g}", f"{height:.0f}"
    as_size = f'width="{size[0]}" height="{size[1]}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" {as_size} role="img">',
        f"<title>{escape(diagram.title)}</title><style>{STYLE}</style>",
        ARROW_HEAD,
        f'<rect {as_size} fill="#fff"/>',
    ]
    badges: list[str] = []
    for arrow in arrows:
        path, x, y = _path(arrow, left)
        parts.append(f'<path class="a" marker-end="url(#h)" d="{path}"/>')
        badges.append(f'<circle class="b" cx="{x:g}" cy="{y:.1f}" r="9"/>')
        badges.append(f'<text class="n" x="{x:g}" y="{y + 4:.1f}" text-anchor="middle">{arrow.number}</text>')
    for number, box in enumerate(boxes):
        first = " f" if number == 0 else ""
        parts.append(
            f'<rect class="s{first}" x="{left:g}" y="{box.top:.1f}" rx="7" '
            f'width="{BOX_WIDTH}" height="{box.height:.1f}"/>'
        )
        middle = box.top + box.height / 2 - (len(box.lines) - 1) * LINE_HEIGHT / 2 + 5
        for line_number, line in enumerate(box.lines):
            y = middle + line_number * LINE_HEIGHT
            parts.append(f'<text x="{left + BOX_WIDTH / 2:g}" y="{y:.1f}" text-anchor="middle">{escape(line)}</text>')
    return "\n".join([*parts, *badges, "</svg>", ""])


def table(diagram: Diagram) -> str:
    """Return what stands below the picture: every step in words, numbered as its arrow."""
    numbers = {arrow: number for number, arrow in enumerate(diagram.arrows(), start=1)}
    words: dict[tuple[str, str], list[str]] = {}
    for step in diagram.steps:
        words.setdefault((step.before, step.after), []).append(step.what)
    lines = ["| | from | what happens | to |", "| --- | --- | --- | --- |"]
    for (before, after), whats in words.items():
        number = str(numbers.get((before, after), ""))
        lines.append(f"| {number} | {before} | {'; '.join(whats)} | {after if after != before else 'the same'} |")
    return "\n".join(lines)


def block(diagram: Diagram) -> str:
    """Return what a page shows: the picture, and its table."""
    return "\n".join(
        [
            f"![{diagram.title}: states and numbered transitions](diagrams/{diagram.name}.svg)",
            "",
            table(diagram),
            "",
            f"Drawn from `{diagram.source}`.",
        ]
    )


def table_block(table: Table) -> str:
    """Return what a page shows of a table that was made from the code."""
    rows = [table.heads, tuple("---" for _ in table.heads), *table.rows]
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join(["", *lines, "", f"Made from `{table.source}`."])  # a comment right above would not let it be one
