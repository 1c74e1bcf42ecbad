"""Read the prose of Markdown and Python files, without code and markup."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOGGED: Final = frozenset({"critical", "debug", "error", "exception", "info", "log", "warn", "warning"})
_SECTION: Final = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Example|Source):")
_ENTRY: Final = re.compile(r" +\**[\w.]+: +(?=\S)")
_LIST_ITEM: Final = re.compile(r"\s*([-*+]|\d+[.)]|#{1,6}|>)\s+")
_TOOL_COMMENT: Final = re.compile(r"#\s*(noqa|type:|pyright:|pragma|mypy:|ruff:|!)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, cell, string or comment.

    Attributes:
        line: Number of its first line.
        kind: ``page``, ``table``, ``docstring``, ``comment``, ``message`` or ``help``.
        text: The words on one line, with ``X`` for code.
    """

    line: int
    kind: str
    text: str


def passages(path: Path) -> list[Passage]:
    """Return the prose of a Markdown or Python file."""
    source = path.read_text(encoding="utf-8")
    found = of_python(source) if path.suffix == ".py" else of_markdown(source)
    return [each for each in found if re.search("[A-Za-z]{2}", each.text)]


def plain(text: str) -> str:
    """Replace inline code by ``X`` and links by their words."""
    text = re.sub(r"(`+).+?\1", "X", text)
    text = re.sub(r"!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = re.sub(r"<[^<>]+>|https?://\S+", " ", text)
    text = re.sub(r"\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)", "", text)
    return " ".join(text.split())


def of_markdown(source: str) -> Iterator[Passage]:
    """Yield paragraphs, list items, headings and table cells."""
    hidden = r"\A---\n.*?\n---\n|^ *(```+).*?^ *\1|<!--.*?-->|<svg.*?</svg>"
    source = re.sub(hidden, lambda found: "\n" * found[0].count("\n"), source, flags=re.DOTALL | re.MULTILINE)
    block: list[str] = []
    begun = 0
    for number, line in enumerate([*source.splitlines(), ""], 1):
        item = _LIST_ITEM.match(line)
        is_row = line.lstrip().startswith("|")
        if block and (not line.strip() or item or is_row):
            yield Passage(begun, "page", plain(" ".join(block)))
            block = []
        if is_row:
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            yield from (Passage(number, "table", plain(cell)) for cell in cells if len(cell.split()) > 2)
        elif line.strip():
            begun = begun if block else number
            block.append(line[item.end() :] if item else line)


def of_python(source: str) -> Iterator[Passage]:
    """Yield docstrings, comments, messages and help texts."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings(node.body)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _strings(node.exc, "message")
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in LOGGED:
                for argument in node.args[:3]:
                    if isinstance(argument, ast.Constant | ast.JoinedStr):
                        yield from _strings(argument, "message")
            for keyword in node.keywords:
                if keyword.arg == "help":
                    yield from _strings(keyword.value, "help")
    yield from _comments(source)


def _docstrings(body: list[ast.stmt]) -> Iterator[Passage]:
    """Yield the docstring at the beginning of a body, and those below its attributes."""
    previous: ast.stmt | None = None
    for place, statement in enumerate(body):
        if place == 0 or isinstance(previous, ast.Assign | ast.AnnAssign):
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield from _paragraphs(value.value, value.lineno)
        previous = statement


def _paragraphs(docstring: str, line: int) -> Iterator[Passage]:
    block: list[str] = []
    begun = line
    for number, text in enumerate([*docstring.splitlines(), ""], line):
        words = text.strip()
        entry, item = _ENTRY.match(text), _LIST_ITEM.match(text)
        is_picture = re.search(r"\S {2,}\S|[─│▶▲▼└┌]|-->", words) is not None
        if block and (not words or entry or item or is_picture or _SECTION.match(words)):
            yield Passage(begun, "docstring", plain(" ".join(block)))
            block = []
        if words and not is_picture and not _SECTION.match(words):
            begun = begun if block else number
            start = entry or item
            block.append(text[start.end() :] if start else words)


def _strings(node: ast.AST, kind: str) -> Iterator[Passage]:
    """Yield the strings below a node. An f-string is one text with ``X`` for its values."""
    if isinstance(node, ast.JoinedStr):
        parts = [str(each.value) if isinstance(each, ast.Constant) else "X" for each in node.values]
        yield from _string("".join(parts), node.lineno, kind)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _string(node.value, node.lineno, kind)
    else:
        for each in ast.iter_child_nodes(node):
            yield from _strings(each, kind)


def _string(text: str, line: int, kind: str) -> Iterator[Passage]:
    if len(re.findall("[A-Za-z]+", text)) > 2:
        yield Passage(line, kind, plain(text))


def _comments(source: str) -> Iterator[Passage]:
    """Yield comments. Consecutive lines in one column are one comment."""
    block: list[str] = []
    place = (0, 0)
    for token in _comment_tokens(source):
        row, column = token.start
        if block and place != (row - 1, column):
            yield Passage(place[0] - len(block) + 1, "comment", plain(" ".join(block)))
            block = []
        block.append(re.split(r"#\s*(?:noqa|type:|pyright:)", token.string.lstrip("# "))[0])
        place = (row, column)
    if block:
        yield Passage(place[0] - len(block) + 1, "comment", plain(" ".join(block)))


def _comment_tokens(source: str) -> Iterable[tokenize.TokenInfo]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return (each for each in tokens if each.type == tokenize.COMMENT and not _TOOL_COMMENT.match(each.string))
