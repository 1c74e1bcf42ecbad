"""Finds old names in the syntax of a program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from deltaloop.renamed.names import GONE, KEYWORDS, METHODS, MOVED, RENAMED

_FENCE = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


class OldName(NamedTuple):
    """An old name in a program."""

    line: int
    old: str
    new: str


def new_name(dotted: str) -> str:
    """Return what a dotted name is called now, which may be the same. What is in a renamed module moves along."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        head, name = ".".join(parts[: end - 1]), parts[end - 1]
        whole = ".".join(parts[:end])
        new = RENAMED.get(whole) or (f"{MOVED[head, name]}.{name}" if (head, name) in MOVED else "")
        if new and new != whole:
            return new_name(".".join([new, *parts[end:]]))
    return dotted


def _advice(dotted: str) -> str:
    """Return what to write in a dotted name's place; empty if it may stay."""
    new = new_name(dotted)
    return GONE.get(new, "" if new == dotted else new)


def find_in_markdown(text: str) -> list[OldName]:
    """Find the old names in a page's fenced Python; ``dl`` is deltaloop there. What is not whole Python is left out."""
    found: list[OldName] = []
    for fence in _FENCE.finditer(text):
        code = re.sub(rf"^{fence[1]}", "", fence[2], flags=re.MULTILINE)
        above = text.count("\n", 0, fence.start(2))
        try:
            found += [each._replace(line=each.line + above) for each in find(code, known={"dl": "deltaloop"})]
        except SyntaxError:
            continue
    return found


def find(code: str, *, known: dict[str, str] | None = None) -> list[OldName]:
    """Find the old names in a module.

    Args:
        code: The module's source.
        known: Names that mean something without being imported.

    Raises:
        SyntaxError: It is not Python.
    """
    tree = ast.parse(code)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    meanings = dict(known or {})
    for node in imports:
        meanings |= _bound(node)
    found = [each for node in imports for each in _in_import(node)]
    found += _Uses(meanings).of(tree)
    return sorted(set(found))


def _bound(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return what an import binds, with what each name means."""
    if isinstance(node, ast.ImportFrom):
        if node.level or not _ours(node.module or ""):
            return {}
        return {each.asname or each.name: new_name(f"{node.module}.{each.name}") for each in node.names}
    ours = [each for each in node.names if _ours(each.name)]
    return {each.asname or "deltaloop": new_name(each.name) if each.asname else "deltaloop" for each in ours}


def _in_import(node: ast.Import | ast.ImportFrom) -> Iterator[OldName]:
    if isinstance(node, ast.ImportFrom) and node.level:
        return
    head = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    for each in node.names:
        old = f"{head}{each.name}"
        if _ours(old) and (new := _advice(old)):
            yield OldName(each.lineno, old, new)


def _ours(dotted: str) -> bool:
    return f"{dotted}.".startswith("deltaloop.")


class _Uses:
    """Walks a module; each chain of attributes is looked at once, from its longest form on."""

    def __init__(self, meanings: dict[str, str]) -> None:
        self._meanings = meanings

    def of(self, node: ast.AST) -> Iterator[OldName]:
        if isinstance(node, ast.Call):
            yield from self._in_keywords(node)
        if isinstance(node, ast.Attribute):
            dotted = self._meaning(node)
            if dotted:
                if new := _advice(dotted):
                    yield OldName(node.lineno, ast.unparse(node), self._as_written(node, new))
                return
            if node.attr in METHODS:
                yield OldName(node.end_lineno or node.lineno, f".{node.attr}", METHODS[node.attr])
        for child in ast.iter_child_nodes(node):
            yield from self.of(child)

    def _meaning(self, node: ast.AST) -> str:
        """Return the dotted name that an expression is, as it is called in the imports; empty for anything else."""
        if isinstance(node, ast.Name):
            return self._meanings.get(node.id, "")
        if isinstance(node, ast.Attribute) and (inner := self._meaning(node.value)):
            return f"{inner}.{node.attr}"
        return ""

    def _as_written(self, node: ast.AST, new: str) -> str:
        """Write a new name as the program would: by the name under which it knows deltaloop, if it has one."""
        while isinstance(node, ast.Attribute):
            node = node.value
        root = node.id if isinstance(node, ast.Name) else ""
        return new.replace("deltaloop", root, 1) if self._meanings.get(root) == "deltaloop" else new

    def _in_keywords(self, node: ast.Call) -> Iterator[OldName]:
        method = f".{node.func.attr}" if isinstance(node.func, ast.Attribute) else ""
        called = new_name(self._meaning(node.func)) or method
        for keyword in node.keywords:
            new = KEYWORDS.get((called, keyword.arg or ""))
            if new:
                yield OldName(keyword.value.lineno, f"{keyword.arg}=", new)
