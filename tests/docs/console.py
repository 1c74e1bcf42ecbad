"""Reads the commands of a console block and checks what can be checked without running them; ``terminal`` runs them.

``make TARGET`` must be a target. ``deltaloop COMMAND --option`` must be a command with that option and as many
arguments: it is read by the command line's own parser. Of other programs only the names are checked,
against a list, so that a slip in ``deltaloop`` or ``make`` does not go by as an unknown program.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import typer.main

from deltaloop.cli.app import app

ROOT = Path(__file__).parents[2]
LANGUAGES = ("console", "sh", "bash", "shell")
OTHER_PROGRAMS = frozenset({
    "cat", "cd", "cp", "curl", "docker", "export", "git", "go", "head", "helm", "kill", "kind", "kubectl", "mkdir",
    "pip", "podman", "pytest", "python", "python3", "sha256sum", "sleep", "source",
    "ssh-keygen", "."
})  # fmt: skip


def commands(language: str, text: str) -> list[str]:
    """List a block's commands; in a ``console`` block they begin with ``$``, and the rest is what they print."""
    whole = re.sub(r"\\\n\s*", " ", text)
    lines = [line.strip() for line in whole.splitlines()]
    if language == "console":
        return [line[2:] for line in lines if line.startswith("$ ")]
    return [line for line in lines if line and not line.startswith("#")]


def words_of(command: str) -> list[str]:
    """Split one command as a shell does, without comments and without the variables that it sets."""
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0]):
        words = words[1:]
    return words


def simple_commands(command: str) -> list[list[str]]:
    """Split at ``&&``, ``|``, ``;`` and a final ``&``, and leave out where output goes to."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="&|;<>")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if word and set(word) <= set("&|;"):
            found.append([])
        elif word and set(word) <= set("<>&"):
            found[-1].append(">")
        else:
            found[-1].append(word)
    return [words_of(shlex.join(words[: words.index(">")] if ">" in words else words)) for words in found if words]


def check(command: str) -> None:
    """Check one command.

    Raises:
        AssertionError: It names a target, command, option or program that is not there.
    """
    for words in simple_commands(command):
        if not words:
            continue
        program = os.path.basename(words[0])  # noqa: PTH119 - a word of a command, not a path of this machine
        if program == "make":
            _check_make(words[1:], command)
        elif program == "deltaloop":
            _check_deltaloop(words[1:], command)
        else:
            assert program in OTHER_PROGRAMS, f"{command!r}: an unknown program, {program!r}"


def _check_make(words: list[str], command: str) -> None:
    folder = ""
    if words[:1] == ["-C"]:
        folder, words = ("lab" if words[1] == "lab" else ""), words[2:]
    makefile = (ROOT / folder / "Makefile").read_text()
    for target in (word for word in words if "=" not in word and not word.startswith("-")):
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), f"{command!r}: no target {target!r}"


def _check_deltaloop(words: list[str], command: str) -> None:
    assert words, f"{command!r}: no command"
    if words[0] in ("--help", "--version"):
        return
    found: Any = typer.main.get_command(app)
    while hasattr(found, "list_commands"):
        known = found.list_commands(None)
        assert words, f"{command!r}: no command, only {known}"
        if words[0] == "--help":
            return
        assert words[0] in known, f"{command!r}: no command {words[0]!r}, only {known}"
        found, words = found.get_command(None, words[0]), words[1:]
    if "--help" in words:
        return
    try:
        found.make_context(found.name, words)
    except Exception as error:
        raise AssertionError(f"{command!r}: {error}") from error
