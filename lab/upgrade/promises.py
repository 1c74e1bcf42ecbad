"""Read the promises of the checkout: public names, commands, metrics, and keys in clusters.

``python -m lab.upgrade.promises`` writes those of the version in ``pyproject.toml`` to its folder. Run it until the
version has a tag, and never afterwards.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer.main
from tools.release.checkout import ROOT, version

from deltaloop.cli.app import app

HERE: Final = Path(__file__).parent
_KEY: Final = re.compile(r'"((?:webhooks\.)?deltaloop\.dev/[a-z-]+)"')
_METRIC: Final = re.compile(r"^ +(?:counter|gauge|histogram) ([a-z_]+) ?(\S*)$", re.MULTILINE)
_PART: Final = re.compile(r"(?<=[(, *])([A-Za-z_]\w*)(?=[(:=,)]|$)")

Promises = dict[str, set[str]]
"""Parts of each promised thing: parameters and members of a name, options of a command, labels of a metric."""


def names() -> Iterator[tuple[str, set[str]]]:
    for line in (ROOT / "tools" / "public_api" / "signatures.txt").read_text().splitlines():
        name, _, rest = line.partition(" ")
        kind, _, signature = rest.partition("(")  # bases of a class are no parts of it
        signature = signature.partition(")")[2] if "class" in kind else f"({signature}"
        yield f"name {name}", {*_PART.findall(signature)} - {*dir(builtins)}


def commands(command: Any, path: str) -> Iterator[tuple[str, set[str]]]:
    flags = {flag for each in command.params for flag in each.opts if flag.startswith("-")}
    yield f"command {path}", flags
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{path} {name}")


def promises() -> Promises:
    """Return all promises of this checkout."""
    sources = [path.read_text() for path in (ROOT / "src" / "deltaloop").rglob("*.py")]
    found = {**dict(names()), **dict(commands(typer.main.get_command(app), "deltaloop"))}
    found |= {f"metric {name}": set(labels.split(",")) for text in sources for name, labels in _METRIC.findall(text)}
    return found | {f"key {key}": set[str]() for text in sources for key in _KEY.findall(text)}


def read(file: Path) -> Promises:
    """Read the promises of a version."""
    lines = [line.split("; ") for line in file.read_text().splitlines()]
    return {line[0]: set(line[1].split()) for line in lines}


if __name__ == "__main__":
    folder = HERE / f"v{version().replace('.', '_')}"
    folder.mkdir(exist_ok=True)
    written = [f"{name}; {' '.join(sorted(parts))}" for name, parts in sorted(promises().items())]
    (folder / "promises.txt").write_text("\n".join(written) + "\n")
