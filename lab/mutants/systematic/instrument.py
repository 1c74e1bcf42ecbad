"""Modules that note which of their statements ran, and, in a process of its own, one that holds a mistake."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path as FilePath
from types import CodeType, ModuleType
from typing import Any, cast

from lab.mutants.systematic.mutant import Mutant, Place
from lab.mutants.systematic.tree import FUNCTIONS, at, changed

_HITS = "__statements_that_ran__"


class Room:
    """The modules that are looked at: their trees, and which statements of theirs ran.

    Args:
        root: the package's folder, such as ``src/deltaloop``.
        package: its name.
        modules: files below it.
    """

    def __init__(self, root: FilePath, package: str, modules: Sequence[str]) -> None:
        self.root, self.package = root, package
        self.trees = {module: ast.parse((root / module).read_text()) for module in modules}
        self.statements: list[tuple[str, Place]] = []
        self.numbers: dict[tuple[str, Place], int] = {}
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.stmt):
                    self.numbers[module, (node.lineno, node.col_offset)] = len(self.statements)
                    self.statements.append((module, (node.lineno, node.col_offset)))
        self.ran = bytearray(len(self.statements))
        self.codes: dict[str, CodeType] = {}
        self.mutant: Mutant | None = None

    def name(self, module: str) -> str:
        parts = FilePath(module).with_suffix("").parts
        return ".".join((self.package, *(parts[:-1] if parts[-1] == "__init__" else parts)))

    def file(self, module: str) -> str:
        return str(self.root / module)

    def code(self, module: str) -> CodeType:
        """What an import runs: the mutant if it is this module's, else one that notes what ran."""
        if self.mutant is not None and self.mutant.module == module:
            return _compiled(self.mutant.tree(self.trees[module]), self.file(module))
        if module not in self.codes:
            noting = _noting(self.trees[module], module, self.numbers)
            self.codes[module] = _compiled(ast.fix_missing_locations(noting), self.file(module))
        return self.codes[module]

    def install(self) -> None:
        """Make imports go through here; nothing of the room is imported yet."""
        there = [self.name(each) for each in self.trees if self.name(each) in sys.modules]
        if there:
            raise RuntimeError(f"imported too early: {there}")
        sys.meta_path.insert(0, _Finder(self))

    def import_all(self) -> None:
        for module in self.trees:
            importlib.import_module(self.name(module))


class _Finder(PathFinder):
    def __init__(self, room: Room) -> None:
        self.room = room
        self.modules = {room.name(module): module for module in room.trees}

    def find_spec(  # type: ignore[override]  # PathFinder's is of the class, this one has a room
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        module = self.modules.get(fullname)
        if module is None:
            return None
        file = self.room.file(module)
        loader = _Loader(fullname, file, self.room, module)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, room: Room, module: str) -> None:
        super().__init__(fullname, path)
        self.room, self.module = room, module

    def get_code(self, fullname: str) -> CodeType:
        return self.room.code(self.module)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__[_HITS] = self.room.ran
        super().exec_module(module)


def _compiled(tree: ast.Module, file: str) -> CodeType:
    return compile(tree, file, "exec", dont_inherit=True)


def _noting(node: Any, module: str, numbers: dict[tuple[str, Place], int], inside: bool = False) -> Any:
    """The same tree, which notes each statement of a function before it runs."""
    fields: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        within = inside or (isinstance(node, FUNCTIONS) and name == "body")
        if isinstance(value, ast.AST):
            fields[name] = _noting(value, module, numbers, inside)
        elif isinstance(value, list):
            made: list[Any] = []
            for each in cast("list[object]", value):
                docstring = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
                if within and isinstance(each, ast.stmt) and not docstring:
                    made.append(_note(numbers[module, (each.lineno, each.col_offset)], each))
                made.append(_noting(each, module, numbers, within) if isinstance(each, ast.AST) else each)
            fields[name] = made
    return changed(node, **fields)


def _note(number: int, before: ast.stmt) -> ast.stmt:
    place = ast.Subscript(ast.Name(_HITS, ast.Load()), ast.Constant(number), ast.Store())
    return ast.copy_location(ast.Assign([place], ast.Constant(1), lineno=before.lineno), before)


def mutated_function(room: Room, mutant: Mutant) -> CodeType:
    """The code of the outermost function around the mistake."""
    assert mutant.outermost is not None
    tree = mutant.tree(room.trees[mutant.module])
    function = at(tree, mutant.outermost)
    node, path = function, mutant.outermost
    nested: ast.stmt = node
    while path:
        path = path[:-2] if isinstance(path[-1], int) else path[:-1]
        outer = at(tree, path)
        if isinstance(outer, ast.ClassDef):
            nested = ast.copy_location(ast.ClassDef(outer.name, [], [], [nested], []), outer)
    bare = ast.Module([*_future(tree), nested], [])
    bare = ast.fix_missing_locations(bare)
    code = _compiled(bare, room.file(mutant.module))
    found = [each for each in _all_codes(code) if _is_of(each, function)]
    if len(found) != 1:
        raise LookupError(f"{mutant}: {len(found)} functions")
    return found[0]


def _future(tree: ast.Module) -> list[ast.stmt]:
    return [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]


def _all_codes(code: CodeType) -> list[CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return inner + [deep for each in inner for deep in _all_codes(each)]


def first_line(function: Any) -> int:
    return min(int(each.lineno) for each in (function, *function.decorator_list))


def _is_of(code: CodeType, function: Any) -> bool:
    return code.co_name == function.name and code.co_firstlineno == first_line(function)
