"""Puts the snippets into one program, has mypy and pyright look at it as at a user's, and says what they missed."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "type_checks"
HEADER: Final = """\
from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Any

import deltaloop as dl
from deltaloop import blocking
from deltaloop.types import core_v1, networking_v1
"""


class Snippet(msgspec.Struct, frozen=True):
    """A piece of a program: what it shows, and its code."""

    about: str
    code: str


class Snippets(msgspec.Struct, frozen=True):
    """Those in which there is a mistake, and those in which there is none."""

    wrong: tuple[Snippet, ...]
    right: tuple[Snippet, ...]


class Program(NamedTuple):
    """The snippets as one module, and the lines of each: its number in the module, and the first line after it."""

    text: str
    lines: tuple[tuple[int, int], ...]


class FieldError(NamedTuple):
    """What a checker says of a line."""

    line: int
    text: str


class Surprise(NamedTuple):
    """A snippet of which a checker says what it should not."""

    checker: str
    about: str
    said: str


def snippets() -> Snippets:
    """Read the snippets."""
    content = tomllib.loads(Path(__file__).with_name("snippets.toml").read_text())
    return msgspec.convert(content, Snippets)


def program(found: Sequence[Snippet]) -> Program:
    """Make one module of snippets: each is the body of a function of its own."""
    text, lines = HEADER, list[tuple[int, int]]()
    for number, snippet in enumerate(found):
        first = text.count("\n") + 1
        body = textwrap.indent(snippet.code.strip("\n"), "    ")
        text += f"\n\nasync def snippet_{number}(client: dl.Client) -> None:\n{body}\n"
        lines.append((first, text.count("\n") + 1))
    return Program(text, tuple(lines))


def surprises(checker: str, found: Snippets, made: Program, findings: Sequence[FieldError]) -> list[Surprise]:
    """Compare what a checker has found with where mistakes are; ``made`` has the wrong ones first."""
    surprising: list[Surprise] = []
    for number, (snippet, (first, end)) in enumerate(zip((*found.wrong, *found.right), made.lines, strict=True)):
        said = [finding.text for finding in findings if first <= finding.line < end]
        if number < len(found.wrong) and not said:
            surprising.append(Surprise(checker, snippet.about, "nothing"))
        if number >= len(found.wrong) and said:
            surprising.append(Surprise(checker, snippet.about, said[0]))
    surprising += [Surprise(checker, "the header", each.text) for each in findings if each.line < made.lines[0][0]]
    return surprising


def run_mypy(path: Path, *more: str) -> list[FieldError]:
    """Return the errors that mypy finds in a program, by its own defaults."""
    command = [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={path.parent / 'mypy'}", *more, path.name]
    answer = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    if answer.returncode not in (0, 1):
        raise RuntimeError(f"mypy: {answer.stdout}{answer.stderr}")
    found = re.findall(rf"^{path.name}:(\d+): error: (.*)$", answer.stdout, flags=re.MULTILINE)
    return [FieldError(int(line), text) for line, text in found]


def run_pyright(path: Path) -> list[FieldError]:
    """Return the errors that pyright finds in a program, by its own defaults."""
    (path.parent / "pyrightconfig.json").write_text('{"pythonVersion": "3.11"}')
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", path.name]
    answer = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    if answer.returncode not in (0, 1):
        raise RuntimeError(f"pyright: {answer.stdout}{answer.stderr}")
    said: list[dict[str, Any]] = msgspec.json.decode(answer.stdout)["generalDiagnostics"]
    return [
        FieldError(each["range"]["start"]["line"] + 1, each["message"].partition("\n")[0])
        for each in said
        if each["severity"] == "error"
    ]
