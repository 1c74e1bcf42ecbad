"""Places in a syntax tree, and trees in which one place holds something else."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any, TypeVar, cast

Path = tuple[str | int, ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef
N = TypeVar("N")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def children(node: ast.AST) -> Iterator[tuple[Path, ast.AST]]:
    """Every child, and the way to it."""
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield (field,), value
        elif isinstance(value, list):
            for index, each in enumerate(cast("list[object]", value)):
                if isinstance(each, ast.AST):
                    yield (field, index), each


def at(node: Any, path: Path) -> Any:
    """What stands there."""
    for step in path:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


def replaced(node: Any, path: Path, by: ast.AST) -> Any:
    """The tree with something else at that place; it shares all other branches with the old one."""
    if not path:
        return by
    step, rest = path[0], path[1:]
    changed = copy.copy(node)
    if isinstance(step, int):
        changed[step] = replaced(node[step], rest, by)
    else:
        setattr(changed, step, replaced(getattr(node, step), rest, by))
    return changed


def changed(node: N, **fields: Any) -> N:
    """A copy of one node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def without(items: list[Any], index: int) -> list[Any]:
    return [*items[:index], *items[index + 1 :]]


def shown(node: ast.AST, width: int = 110) -> str:
    """A node's source on one line; of a statement with others inside its head only."""
    text = " ".join(ast.unparse(ast.fix_missing_locations(_head(node))).split())
    if isinstance(node, ast.ExceptHandler):
        text = text.removeprefix("try: pass ")
    text = text.removesuffix(": pass")
    return text if len(text) <= width else f"{text[: width - 4]} ..."


def _head(node: ast.AST) -> ast.AST:
    nothing: list[ast.stmt] = [ast.Pass()]
    if isinstance(node, ast.If | ast.While):
        return changed(node, body=nothing, orelse=[])
    if isinstance(node, ast.With | ast.AsyncWith):
        return changed(node, body=nothing)
    if isinstance(node, ast.ExceptHandler):
        return ast.Try(body=nothing, handlers=[changed(node, body=nothing)], orelse=[], finalbody=[])
    if isinstance(node, ast.Try):
        return changed(node, body=nothing, handlers=[], orelse=[], finalbody=nothing)
    if isinstance(node, ast.Match):
        return ast.Expr(ast.Call(ast.Name("match", ast.Load()), [node.subject], []))
    return node
