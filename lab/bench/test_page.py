"""The page and its pictures, from a summary that has little in it."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from lab.bench import chart, page

SUMMARY: dict[str, Any] = {
    "commit": "c0ffee",
    "machine": {"cpu": "a CPU", "cpus": 2, "memory_gib": 4, "system": "Linux", "load_average": 0.5},
    "versions": {"python": "3.11"},
    "runs": 5,
    "skipped": ["kopf"],
    "failed": {},
    "rows": [
        {
            "case": case,
            "peer": "floor",
            "metric": "cpu",
            "ratio": 1.5,
            "ours": 30.0,
            "theirs": 20.0,
            "runs": 5,
            "wire": "json",
            "measured": 10_000,
        }
        for case in ("list-10k", "watch-50k")
    ],
}
SPLIT = {
    name: {"list": float(number * 5), "event": float(number * 4), "bytes": 0.0}
    for number, name in enumerate(("plain-socket", "socket", "http", "lines", "floor", "client", "cache", "index"), 1)
}


def test_blocks_are_filled_and_other_text_is_unchanged() -> None:
    text = "before\n<!-- figures: run -->\nold\n<!-- end -->\nafter\n"
    filled = page.fill(text, {"run": "new"})
    assert filled == "before\n<!-- figures: run -->\nnew\n<!-- end -->\nafter\n"
    assert page.fill(filled, {"run": "new"}) == filled
    with pytest.raises(KeyError):
        page.fill(text, {})


def test_page_has_marker_for_each_block(tmp_path: Path) -> None:
    committed = Path(__file__).parents[2] / page.PAGE
    (tmp_path / page.PAGE).parent.mkdir(parents=True)
    (tmp_path / page.PAGE).write_text(committed.read_text())
    page.write(tmp_path, {**SUMMARY, "time-split": SPLIT})
    written = (tmp_path / page.PAGE).read_text()
    for name in page.blocks(SUMMARY):
        assert f"<!-- figures: {name} -->" in written
    assert "| list-10k | floor | json | 10,000 | 30.0 / 20.0 = 1.500 |" in written
    pictures = sorted((tmp_path / page.PICTURES).iterdir()) + sorted((tmp_path / page.SITE_PICTURES).iterdir())
    assert [each.name for each in pictures if f"/{each.name})" not in written] == []
    for picture in pictures:
        ET.fromstring(picture.read_text())


def test_stage_costs_are_nonnegative_differences() -> None:
    parts = dict(page.stage_parts({**SPLIT, "lines": {"list": 1.0, "event": 1.0}}, "list"))
    assert parts["socket"] == 5.0
    assert parts["TLS"] == 5.0
    assert parts["lines"] == 0.0
    assert "another handler" not in parts


def test_names_in_chart_are_escaped() -> None:
    picture = chart.bars("a < b", [("x & y", 3.0), ("nothing", 0.0)], unit="us", highlight="x")
    ET.fromstring(picture)
    assert "nothing" not in picture
    ET.fromstring(chart.stacks("t", [("line", [("part", 2.0), ("less", -1.0)])], unit="us"))
    ET.fromstring(chart.bars("empty", [], unit="us", highlight="x"))


def test_imports_are_compared_with_bounds() -> None:
    steps = {
        "dependencies": {"modules": 100, "cpu": 0.2, "bytes": 30 << 20},
        "deltaloop": {"modules": 200, "cpu": 0.080, "bytes": (4 << 20) + 4096},
    }
    found = {"loop": 0.4, "facade": {"modules": 1, "cpu": 0.01, "bytes": 2 << 20}, "controller": steps}
    text = dict(page.blocks({**SUMMARY, "import": found}))["import"]
    assert "80 ms, at most 80: reached; 4.0 MiB, at most 4: **not reached**" in text
    assert "| dependencies | 100 | 200 | 30.0 |" in text
    assert dict(page.blocks(SUMMARY))["import"] == "Not measured."
