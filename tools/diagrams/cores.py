"""Which core is explained on which page: the table at the end of a page of concepts.

A page names its cores itself, in the comment that begins the table:

    <!-- cores: client/core/pager.py, client/core/list_splitter.py -->

A folder, with a slash at its end, stands for everything in it; what is named after it with a ``-`` is left out of it,
for another page. The rest of the table comes from the code: what a core
is about is the first line of its docstring; its drivers are the modules outside of ``core/`` that import it, those that
name it in their own docstring first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[2] / "src" / "deltaloop"
BEGIN: Final = re.compile(r"<!-- cores: (?P<names>.*?) -->\n", re.DOTALL)
END: Final = "<!-- end of cores -->"
_IMPORT: Final = re.compile(
    r"^ *from (deltaloop\.(?:\w+\.core|schemas|crds)[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE
)
_FIRST_LINE: Final = re.compile(r'r?"""(.*)')
MOST_DRIVERS: Final = 3


def all_cores(source: Path = SOURCE) -> list[str]:
    """Return every core module of the package, such as ``client/core/pager.py``; ``schemas`` and ``crds`` are some."""
    found = (path.relative_to(source).as_posix() for path in source.rglob("*.py"))
    return sorted(name for name in found if is_core(name) and not name.endswith("__init__.py"))


def is_core(name: str) -> bool:
    """Tell whether a module decides and does not wait, by its path."""
    return "/core/" in name or name.startswith(("schemas/", "crds/"))


def named(page: str, cores: list[str]) -> list[str]:
    """Return the cores that a page names, folders taken apart, in the page's order.

    Raises:
        ValueError: If it names one that there is not, or one twice.
    """
    names: list[str] = []
    for found in BEGIN.finditer(page):
        for entry in found["names"].replace("\n", " ").split(","):
            name = entry.strip().removeprefix("-")
            meant = [core for core in cores if core == name or _is_in(core, name)]
            if not meant:
                raise ValueError(f"a page names a core that there is not: {name}")
            names = [core for core in names if core not in meant] if entry.strip()[:1] == "-" else names + meant
    if len({*names}) != len(names):
        raise ValueError(f"a page names cores twice: {', '.join(sorted(n for n in {*names} if names.count(n) > 1))}")
    return names


def _is_in(core: str, folder: str) -> bool:
    return folder.endswith("/") and core.startswith(folder)


def without_page(pages: list[str], cores: list[str]) -> list[str]:
    """Return the cores that no page names."""
    known = {name for page in pages for name in named(page, cores)}
    return [core for core in cores if core not in known]


def drivers(source: Path = SOURCE) -> dict[str, list[str]]:
    """Return for each core the modules outside of ``core/`` that import it; first those that say so of themselves."""
    cores = {*all_cores(source)}
    found: defaultdict[str, set[tuple[bool, str]]] = defaultdict(set)
    for path in source.rglob("*.py"):
        name = path.relative_to(source).as_posix()
        if is_core(name) or path.name == "__init__.py":
            continue
        text = path.read_text()
        docstring = text.partition('"""')[2].partition('"""')[0]
        for module, what in _IMPORT.findall(text):
            base = module.removeprefix("deltaloop.").replace(".", "/")
            for core in (f"{base}.py", *(f"{base}/{member}.py" for member in re.findall(r"\w+", what))):
                if core in cores:
                    found[core].add((core.partition("/")[2] not in docstring, name))
    return {core: [name for _, name in sorted(names)] for core, names in found.items()}


def first_line(core: str, source: Path = SOURCE) -> str:
    """Return the first line of a core's docstring, as Markdown."""
    match = _FIRST_LINE.match((source / core).read_text())
    text = match[1].removesuffix('"""').replace("``", "`") if match else ""
    return text.replace("|", "\\|").rstrip(".")


def table(names: list[str], used_by: dict[str, list[str]]) -> str:
    """Return the table of these cores."""
    lines = ["| core | what it is about | used by |", "| --- | --- | --- |"]
    for name in names:
        users = used_by.get(name, [])
        shown = ", ".join(f"`{each}`" for each in users[:MOST_DRIVERS])
        more = f" and {len(users) - MOST_DRIVERS} more" if len(users) > MOST_DRIVERS else ""
        lines.append(f"| `{name}` | {first_line(name)} | {f'{shown}{more}' if shown else 'other cores'} |")
    return "\n".join(lines)


def filled(page: str, cores: list[str], used_by: dict[str, list[str]]) -> str:
    """Return a page with its table of cores as the code has it.

    Raises:
        ValueError: If a table does not end, or names what there is not.
    """
    if page.count(END) != len(BEGIN.findall(page)):
        raise ValueError("a table of cores has no end")
    named(page, cores)

    def fill(found: re.Match[str]) -> str:
        start = re.match(BEGIN, found[0])
        assert start is not None
        return f"{start[0]}\n## The code\n\n{table(named(start[0], cores), used_by)}\n\n{END}"

    return re.sub(rf"{BEGIN.pattern}.*?{re.escape(END)}", fill, page, flags=re.DOTALL)
