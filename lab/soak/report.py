"""What a soak leaves behind: report.json with every sample, a table, and a picture of what each process held."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.soak.slope import Trend

_WIDTH, _HEIGHT, _LEFT, _ROW = 760, 120, 110, 150
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_SHOWN = ("rss", "blocks", "tasks", "sockets")


def table(trends: Sequence[Trend]) -> str:
    """Return the trends as a table of Markdown."""
    lines = [
        "| process | quantity | median | least to most | an hour | over the second half | bound | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {each.process} | {each.quantity} | {each.level:,.0f} | {each.lowest:,.0f} to {each.highest:,.0f} |"
        f" {each.an_hour:+,.2f} | {each.growth:+,.2f} | {each.bound:,.1f} | {'holds' if each.holds else 'GROWS'} |"
        for each in trends
    ]
    return "\n".join(lines) + "\n"


def picture(times: Sequence[float], samples: Sequence[Mapping[str, Mapping[str, float]]]) -> str:
    """Draw, for some quantities, what each process held over the time, as an SVG."""
    last = max(times) or 1.0
    parts: list[str] = []
    for row, quantity in enumerate(_SHOWN):
        values = [sample[name][quantity] for sample in samples for name in sample if quantity in sample[name]]
        if not values:
            continue
        top, base = max(values) * 1.05 or 1.0, row * _ROW + _HEIGHT + 10
        parts.append(f'<text x="4" y="{base - _HEIGHT + 12}">{quantity}</text>')
        parts.append(f'<text x="4" y="{base - _HEIGHT + 28}">to {top:,.0f}</text>')
        parts.append(f'<path d="M{_LEFT} {base}h{_WIDTH - _LEFT}" stroke="#999"/>')
        for name, colour in zip(samples[-1], _COLOURS, strict=False):
            points = " ".join(
                f"{_LEFT + at / last * (_WIDTH - _LEFT):.1f},{base - sample[name][quantity] / top * _HEIGHT:.1f}"
                for at, sample in zip(times, samples, strict=True)
                if quantity in sample.get(name, {})
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
    names = " ".join(
        f'<tspan fill="{colour}">{name}</tspan>' for name, colour in zip(samples[-1], _COLOURS, strict=False)
    )
    height = len(_SHOWN) * _ROW + 20
    parts.append(f'<text x="{_LEFT}" y="{height - 6}">0 to {last / 3600:.2f} hours: {names}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif"'
    return f'{head} font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'


def write(folder: Path, report: Mapping[str, Any], *, trends: Sequence[Trend]) -> None:
    """Write all three; ``report`` has ``times`` and ``samples`` beside whatever else is to be kept."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report, indent=1))
    (folder / "report.md").write_text(table(trends))
    (folder / "report.svg").write_text(picture(report["times"], report["samples"]))
