"""Check which page of ``internals/machines`` names which core module.

A page names its cores in a paragraph of this form:

    Cores: `client/core/pager.py`, `client/core/verbs/`, not `client/core/verbs/old.py`.

A folder ends with a slash and stands for all modules in it. ``not`` leaves a module or folder to another page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[2] / "src" / "deltaloop"
_PARAGRAPH: Final = re.compile(r"^Cores: (.*?)\.$", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r"(not\s+)?`([^`]+)`")


def all_cores(source: Path = SOURCE) -> list[str]:
    """Return all core modules of the package, such as ``client/core/pager.py``, including ``schemas`` and ``crds``."""
    found = (path.relative_to(source).as_posix() for path in source.rglob("*.py"))
    return sorted(name for name in found if is_core(name) and not name.endswith("__init__.py"))


def is_core(name: str) -> bool:
    """Whether a module, given by its path, is a core."""
    return "/core/" in name or name.startswith(("schemas/", "crds/"))


def named(page: str, cores: list[str]) -> list[str]:
    """Return the cores that a page names, with folders expanded.

    Raises:
        ValueError: The page names a core that does not exist, or names a core twice.
    """
    names: list[str] = []
    for paragraph in _PARAGRAPH.findall(page):
        for excluded, entry in _ENTRY.findall(paragraph):
            meant = [core for core in cores if core == entry or (entry.endswith("/") and core.startswith(entry))]
            if not meant:
                raise ValueError(f"a page names a core that does not exist: {entry}")
            names = [core for core in names if core not in meant] if excluded else names + meant
    twice = sorted(name for name in {*names} if names.count(name) > 1)
    if twice:
        raise ValueError(f"a page names cores twice: {', '.join(twice)}")
    return names


def without_page(pages: list[str], cores: list[str]) -> list[str]:
    """Return the cores that are not on any page."""
    known = {name for page in pages for name in named(page, cores)}
    return [core for core in cores if core not in known]
