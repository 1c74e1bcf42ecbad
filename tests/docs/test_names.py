"""Names of ``dl`` that the documentation uses exist."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import deltaloop as dl

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "internals").rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
]
_NAME = re.compile(r"(?<![\w.])dl\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")


def unknown(names: Iterator[str]) -> list[str]:
    """Return the names that do not exist; attributes of classes are not looked up."""
    found: list[str] = []
    for name in names:
        value: object = dl
        for part in name.split("."):
            if not inspect.ismodule(value):
                break
            if not hasattr(value, part):
                found.append(name)
                break
            value = getattr(value, part)
    return found


def test_names_on_pages_exist() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert unknown(match.group(1) for match in _NAME.finditer(text)) == [], page


def test_errors_and_options_on_client_page_are_names_of_dl() -> None:
    text = (ROOT / "docs" / "reference" / "client.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+Error)`", text)) - {"KeyError"}
    named |= set(re.findall(r"\b([A-Z]\w+Options)\(", text))
    assert {"TransportError", "MalformedObjectError", "WriteOptions"} <= named
    assert {name for name in named if not hasattr(dl, name)} == set()
