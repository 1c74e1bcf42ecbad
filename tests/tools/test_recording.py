"""The animated picture of the output of a command."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from tools.recording.draw import COLUMNS, LEAST_STEP, LONGEST_PAUSE, RESULT, ROWS, Line, draw

SVG = "{http://www.w3.org/2000/svg}"


def rows(picture: str) -> list[str]:
    root = ET.fromstring(picture)
    return ["".join(text.itertext()) for text in root.findall(f"./{SVG}svg/{SVG}g/{SVG}text")]


def steps(picture: str) -> list[tuple[float, int]]:
    """Return when the column moves, in seconds, and where it stands then, in pixels."""
    whole = float(re.findall(r"play ([0-9.]+)s", picture)[0])
    frames = re.findall(r"([0-9.]+)%\{transform:translateY\((-?[0-9]+)px\)\}", picture)
    return [(whole * float(at) / 100, int(lift)) for at, lift in frames]


def test_each_line_is_row_with_escaped_markup() -> None:
    picture = draw([Line(0.0, "$ make demo"), Line(0.1, "  0.08s  server    a < b & c")], title="make <demo>")
    assert rows(picture) == ["$ make demo", "  0.08s  server    a < b & c"]
    assert 'aria-label="make &lt;demo&gt;, recorded"' in picture


def test_actor_has_color() -> None:
    picture = draw([Line(0.0, "  0.54s  replica-2 leads"), Line(0.0, "  ok    it holds")], title="t")
    assert '<tspan class="replica">replica-2</tspan>' in picture
    assert '<tspan class="ok">ok</tspan>' in picture


def test_long_line_wraps_below_its_text() -> None:
    text = "  0.54s  replica-2 " + "word " * 40
    found = rows(draw([Line(0.0, text)], title="t"))
    assert len(found) == 3
    assert all(len(row) <= COLUMNS for row in found)
    assert [row.index("word") for row in found] == [19, 19, 19]
    assert " ".join(" ".join(found).split()) == " ".join(text.split())


def test_result_is_shown_before_lines() -> None:
    picture = draw([Line(1.0, "a"), Line(1.001, "b"), Line(1.5, "c"), Line(60.0, "d")], title="t")
    found = steps(picture)
    assert [round((ROWS * 18 - lift) / 18) for _, lift in found] == [4, 0, 1, 2, 3, 4]
    assert found[1][0] == pytest.approx(RESULT, abs=0.01)
    waits = [later - sooner for (sooner, _), (later, _) in pairwise(found[2:])]
    assert waits == pytest.approx([LEAST_STEP, 0.499, LONGEST_PAUSE], abs=0.01)
    whole = float(re.findall(r"play ([0-9.]+)s", picture)[0])
    assert whole - found[-1][0] == pytest.approx(RESULT, abs=0.02)


def test_last_rows_are_shown_without_animation() -> None:
    picture = draw([Line(float(number), f"line {number}") for number in range(ROWS + 5)], title="t")
    assert f".rows{{transform:translateY({-5 * 18}px)" in picture
    assert "@media(prefers-reduced-motion:reduce){.rows{animation:none!important}}" in picture


def test_empty_output_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing was printed"):
        draw([], title="t")
