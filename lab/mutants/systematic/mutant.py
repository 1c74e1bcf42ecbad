"""All mutants of a module: where the mistake is, what stood there, what stands there now."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lab.mutants.systematic.operators import is_logged, is_of_no_interest, mistakes
from lab.mutants.systematic.tree import FUNCTIONS, Path, children, replaced, shown

Place = tuple[int, int]

_NOT_DESCENDED = ("annotation", "returns", "decorator_list", "type_params", "pattern", "bases", "keywords")


@dataclass(frozen=True)
class Mutant:
    """One small mistake in one module.

    Attributes:
        module: its file below the package, such as ``cache/core/store.py``.
        function: qualified name of the function; of the class, or nothing, for what runs when the module is imported.
        before: what stands there.
        after: what the mistake made of it.
        nth: counts mutants that read the same within one function, from 1.
        line: of what was changed.
        statement: line and column of the statement in a function, by which the tests that run it are known.
        path: way to the changed node.
        outermost: way to the function of the module or class around it; none for what runs at the import.
    """

    module: str
    function: str
    before: str
    after: str
    nth: int
    line: int
    statement: Place | None
    path: Path = field(repr=False)
    outermost: Path | None = field(repr=False)
    replacement: ast.AST = field(repr=False, compare=False)

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.module, self.function, self.change, self.nth

    @property
    def change(self) -> str:
        return f"{self.before} -> {self.after}"

    def tree(self, module: ast.Module) -> Any:
        """The module's tree with the mistake in it."""
        changed = replaced(module, self.path, self.replacement)
        return ast.fix_missing_locations(changed)

    def __str__(self) -> str:
        which = f" (no. {self.nth})" if self.nth > 1 else ""
        return f"{self.module}:{self.line} {self.function or 'module'}: {self.change}{which}"


@dataclass(frozen=True)
class _Where:
    function: str = ""
    outermost: Path | None = None
    statement: Place | None = None


def mutants(module: str, tree: ast.Module) -> list[Mutant]:
    """All of one module, in the order of its lines."""
    counts: Counter[tuple[str, str, str]] = Counter()
    found: list[Mutant] = []
    for path, node, other, where in _mistakes(tree, (), _Where()):
        before, after = shown(node), _after(node, other)
        if before == after:
            continue
        counts[where.function, before, after] += 1
        line = getattr(node, "lineno", where.statement[0] if where.statement else 0)
        nth = counts[where.function, before, after]
        found.append(
            Mutant(
                module, where.function, before, after, nth, line, where.statement, path, where.outermost,
                _located(other, node),
            )
        )  # fmt: skip
    return found


def _after(node: ast.AST, other: ast.AST) -> str:
    if isinstance(other, ast.Pass):
        return "removed"
    if isinstance(node, ast.With | ast.AsyncWith):
        return "without `with`"
    if isinstance(node, ast.Try):
        return "without `finally`"
    if isinstance(node, ast.ExceptHandler):
        return "raised on"
    if isinstance(node, ast.If | ast.While) and isinstance(other, ast.If | ast.While):
        return f"{shown(other.test)}"
    if isinstance(node, ast.Match) and isinstance(other, ast.Match):
        return _cases(node, other)
    gone = _gone(node, other)
    return shown(other) if gone is None else f"without {shown(gone)}"


def _gone(node: ast.AST, other: ast.AST) -> ast.AST | None:
    """What a list of parts has no more."""
    if isinstance(node, ast.Call) and isinstance(other, ast.Call):
        return next((each for each in node.keywords if each not in other.keywords), None)
    if isinstance(node, ast.Dict) and isinstance(other, ast.Dict):
        return next((each for each in node.keys if each is not None and each not in other.keys), None)
    if isinstance(node, ast.List | ast.Set) and isinstance(other, ast.List | ast.Set):
        return next((each for each in node.elts if each not in other.elts), None)
    if isinstance(node, ast.BoolOp):
        left = other.values if isinstance(other, ast.BoolOp) else [other]
        return next((each for each in node.values if each not in left), None)
    return None


def _cases(node: ast.Match, other: ast.Match) -> str:
    for index, case in enumerate(node.cases):
        if len(other.cases) == len(node.cases):
            if other.cases[index] is not case:
                return f"no guard at case {shown(case.pattern)} no. {index}"
        elif index >= len(other.cases) or other.cases[index] is not case:
            return f"no case {shown(case.pattern)} no. {index}"
    return "?"


def _located(new: ast.AST, old: ast.AST) -> ast.AST:
    if not hasattr(new, "lineno") and hasattr(old, "lineno"):
        ast.copy_location(new, old)
    return new


def _mistakes(node: ast.AST, path: Path, where: _Where) -> Iterator[tuple[Path, ast.AST, ast.AST, _Where]]:
    if is_of_no_interest(node):
        return
    if isinstance(node, ast.stmt) and where.outermost is not None:
        where = _Where(where.function, where.outermost, (node.lineno, node.col_offset))
    if isinstance(node, ast.ExceptHandler) and where.outermost is not None:
        first = node.body[0]
        where = _Where(where.function, where.outermost, (first.lineno, first.col_offset))
    for other in mistakes(node, at_import=where.outermost is None):
        yield path, node, other, where
    if is_logged(node):
        return
    enumeration = isinstance(node, ast.ClassDef) and any("Enum" in shown(base) for base in node.bases)
    for step, child in children(node):
        if enumeration and isinstance(child, ast.Assign):
            continue
        if step[0] in _NOT_DESCENDED and not (step[0] == "keywords" and isinstance(node, ast.Call)):
            continue
        yield from _mistakes(child, path + step, _inside(node, path, step, where))


def _inside(node: ast.AST, path: Path, step: Path, where: _Where) -> _Where:
    if isinstance(node, ast.ClassDef) and where.outermost is None:
        return _Where(_qualified(where.function, node.name))
    if isinstance(node, FUNCTIONS):
        if step[0] != "body":
            return _Where(_qualified(where.function, node.name), where.outermost, where.statement)
        return _Where(_qualified(where.function, node.name), where.outermost if where.outermost is not None else path)
    return where


def _qualified(outer: str, name: str) -> str:
    return f"{outer}.{name}" if outer else name
