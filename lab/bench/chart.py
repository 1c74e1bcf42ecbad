"""Bar charts as SVG, small enough to be read as text; no library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

_WIDTH, _LABEL, _BAR, _GAP = 760, 190, 18, 8
_COLOURS = ("#0b6e99", "#8a8f98", "#d98324", "#5b8c5a", "#a23b52", "#6f5aa8", "#c2b280", "#3d3d3d", "#7fb7be")


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-weight="{weight}" '
        f'font-family="sans-serif" font-size="12" fill="#333">{escape(text)}</text>'
    )


def _bar(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.0f}" width="{max(width, 0.5):.1f}" height="{_BAR}" fill="{colour}"/>'


def _picture(title: str, height: int, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
    )
    background = f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
    return "\n".join([head, background, _text(8, 18, title, weight="bold"), *parts, "</svg>"]) + "\n"


def number(value: float) -> str:
    """Return three digits, with thousands written out."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def bars(title: str, values: Sequence[tuple[str, float]], *, unit: str, highlight: str) -> str:
    """Return one bar for each value, on a logarithmic scale from the smallest on.

    Args:
        title: Above it.
        values: Names and numbers; those that are not positive are left out.
        unit: After each number.
        highlight: Names that begin so have a colour of their own.
    """
    shown = sorted((each for each in values if each[1] > 0), key=lambda each: each[1])
    if not shown:
        return _picture(title, 40, [])
    low = math.log10(shown[0][1]) - 0.3
    span = max(math.log10(shown[-1][1]) - low, 0.1)
    room = _WIDTH - _LABEL - 120
    parts = list[str]()
    for line, (name, value) in enumerate(shown):
        y = 34 + line * (_BAR + _GAP)
        width = (math.log10(value) - low) / span * room
        parts.append(_text(_LABEL - 6, y + 13, name, anchor="end"))
        parts.append(_bar(_LABEL, y, width, _COLOURS[0] if name.startswith(highlight) else _COLOURS[1]))
        parts.append(_text(_LABEL + width + 5, y + 13, f"{number(value)} {unit}"))
    height = 34 + len(shown) * (_BAR + _GAP) + 22
    parts.append(_text(_LABEL, height - 8, "logarithmic scale"))
    return _picture(title, height, parts)


def stacks(title: str, lines: Sequence[tuple[str, Sequence[tuple[str, float]]]], *, unit: str) -> str:
    """Return one bar for each line, made of its parts in a colour each, with a legend.

    Args:
        title: Above it.
        lines: Names, and their parts' names and sizes; a part that is not positive has no width.
        unit: After each sum.
    """
    names = list(dict.fromkeys(name for _, parts in lines for name, _ in parts))
    largest = max((sum(max(size, 0) for _, size in parts) for _, parts in lines), default=0.0) or 1.0
    room = _WIDTH - _LABEL - 110
    out = list[str]()
    for line, (label, parts) in enumerate(lines):
        y, x = 34 + line * (_BAR + _GAP), float(_LABEL)
        out.append(_text(_LABEL - 6, y + 13, label, anchor="end"))
        for name, size in parts:
            width = max(size, 0) / largest * room
            if width:
                out.append(_bar(x, y, width, _COLOURS[names.index(name) % len(_COLOURS)]))
            x += width
        out.append(_text(x + 5, y + 13, f"{number(sum(max(size, 0) for _, size in parts))} {unit}"))
    top = 34 + len(lines) * (_BAR + _GAP) + 10
    for index, name in enumerate(names):
        x, y = 8 + index % 4 * 188, top + index // 4 * 20
        out.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_COLOURS[index % len(_COLOURS)]}"/>')
        out.append(_text(x + 17, y + 11, name))
    return _picture(title, top + (len(names) + 3) // 4 * 20 + 10, out)
