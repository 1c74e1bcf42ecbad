"""The house form of docstrings, and what counts as public.

Public is: every package of deltaloop; what it and the façade hand out (``tools/public_names.py``); of each class among
that, all public methods and properties, those that it inherits from classes of ours included. Overloads, setters and
names that a class takes from other packages do not count.

The form, as far as a program can hold it:

- there is a docstring, its first line is one sentence and ends with a full stop, and an empty line follows;
- what stands under ``Args`` is a parameter, or, of a class, an attribute or a parameter of its ``__init__``;
- what stands under ``Raises`` is an exception, and says when;
- an error of deltaloop that the function raises in its own body stands under ``Raises``: there, or at its class;
- a number of seconds (a ``float`` named as a duration) comes with the word, there, at its class, or in its own line.

    python -m lab.house.docstrings       # prints what counts, room by room, and what is wrong
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from tools.public_names import homes
from tools.public_names import packages as every_package

from deltaloop import errors
from deltaloop.errors import DeltaloopError

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef | ast.Module

DURATIONS = re.compile(
    r"(.*_)?(timeout|delay|period|duration|deadline|interval|grace|within|every|requeue_after|max_staleness)$"
)
SECTIONS = ("Args", "Raises", "Returns", "Yields", "Attributes", "Source", "Example", "Examples", "Note", "Warning")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicName:
    """One public name and where it is defined."""

    name: str
    node: Definition
    owner: ast.ClassDef | None = None
    scope: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def docstring(self) -> str:
        """Its docstring; empty if it has none."""
        return ast.get_docstring(self.node) or ""


# -- what counts


def packages() -> list[str]:
    """List deltaloop, its faces and the packages in it, but for those that are nobody's business outside."""
    return [name for name in every_package() if ".demo" not in name]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _definition(value: Any) -> Definition | None:
    """Find the source of a class or function of ours; None for constants, aliases and what is not ours."""
    value = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not isinstance(module, str) or not module.startswith("deltaloop") or "<locals>" in qualname or not qualname:
        return None
    node: Definition = _tree(Path(str(importlib.import_module(module).__file__)))
    for part in qualname.split("."):
        inner = [each for each in node.body if isinstance(each, Function | ast.ClassDef) and each.name == part]
        inner = [each for each in inner if not _marks(each) & {"overload", "setter"}]
        if not inner:
            return None
        node = inner[-1]
    return node


def _marks(node: Function | ast.ClassDef) -> set[str]:
    return {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}


def _members(name: str, cls: type) -> Iterator[PublicName]:
    seen: set[str] = set()
    for base in cls.__mro__:
        owner = _definition(base)
        if not isinstance(owner, ast.ClassDef):
            continue
        for child in owner.body:
            if not isinstance(child, Function) or child.name.startswith("_") or child.name in seen:
                continue
            if not _marks(child) & {"overload", "setter"}:
                seen.add(child.name)
                scope = vars(importlib.import_module(base.__module__))
                yield PublicName(name=f"{name}.{child.name}", node=child, owner=owner, scope=scope)


def public_names() -> list[PublicName]:
    """List everything public once, with its members; a name that two packages export is the inner one's."""
    found: dict[int, list[PublicName]] = {}
    for package in sorted(packages(), key=lambda name: -name.count(".")):
        module = importlib.import_module(package)
        found[id(module)] = [PublicName(name=package, node=_tree(Path(str(module.__file__))))]
        for name in homes(package):
            value = getattr(module, name)
            if isinstance(value, ModuleType) or id(value) in found or (node := _definition(value)) is None:
                continue
            scope = vars(importlib.import_module(value.__module__))
            public = PublicName(name=f"{package}.{name}", node=node, scope=scope)
            members = list(_members(public.name, value)) if isinstance(value, type) else []
            found[id(value)] = [public, *members]
    return [each for names in found.values() for each in names]


# -- the form


def sections(docstring: str) -> dict[str, str]:
    """Split off the sections that begin with ``Args:`` and the like."""
    parts = re.split(rf"^({'|'.join(SECTIONS)}):(?=\s)", docstring, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(section: str) -> dict[str, str]:
    """Read ``name: text`` entries of a section, ``*args`` without its stars."""
    lines = inspect.cleandoc("\n" + section).splitlines()
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if (entry := re.match(r"\*{0,2}([\w.,\s`*]+?)(?: \([^)]*\))?:(?:\s|$)(.*)", line)) and not line[0].isspace():
            name = entry[1]
            found[name] = entry[2]
        elif name:
            found[name] += " " + line.strip()
    return found


def _parameters(node: Function) -> dict[str, str]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {
        each.arg: ast.unparse(each.annotation) if each.annotation else ""
        for each in every
        if each is not None and each.arg not in ("self", "cls")
    }


def _known_words(public: PublicName) -> dict[str, str]:
    """What a docstring may describe, with its annotation: parameters; of a class also its attributes."""
    node = public.node
    if isinstance(node, Function):
        return _parameters(node) | _keywords(node, public.scope)
    known: dict[str, str] = {}
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        known |= dict.fromkeys(getattr(public.scope.get(ast.unparse(base)), "__annotations__", ()), "")
    for child in node.body:
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            known[child.target.id] = ast.unparse(child.annotation)
        elif isinstance(child, ast.Assign):
            known |= {target.id: "" for target in child.targets if isinstance(target, ast.Name)}
        elif isinstance(child, Function):
            known |= {child.name: ""} if child.name != "__init__" else _parameters(child)
            own = [each for each in ast.walk(child) if isinstance(each, ast.Attribute)]
            known |= {each.attr: "" for each in own if isinstance(each.ctx, ast.Store) and each.attr not in known}
    return known


def _keywords(node: Function, scope: dict[str, Any]) -> dict[str, str]:
    """The keywords of ``**keywords: Unpack[T]``, which are those of the typed dict ``T``."""
    annotation = node.args.kwarg.annotation if node.args.kwarg else None
    if not isinstance(annotation, ast.Subscript):
        return {}
    name = ast.unparse(annotation.slice).partition("[")[0]
    keywords = scope.get(name) or _imported_for_type_checkers(name, scope)
    return dict.fromkeys(get_type_hints(keywords), "") if isinstance(keywords, type) else {}


def _imported_for_type_checkers(name: str, scope: dict[str, Any]) -> object:
    for each in ast.walk(ast.parse(Path(scope["__file__"]).read_text())):
        if isinstance(each, ast.ImportFrom) and each.module and name in {alias.name for alias in each.names}:
            return getattr(importlib.import_module(each.module), name)
    return None


def _raised(node: Function) -> set[str]:
    """Names of the exceptions that the body raises itself: not in inner functions, not where it catches them."""
    found: set[str] = set()

    def visit(statement: ast.AST) -> None:
        if isinstance(statement, Function | ast.Lambda | ast.ClassDef):
            return
        if isinstance(statement, ast.Raise) and statement.exc is not None:
            call = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
            found.add(ast.unparse(call).rpartition(".")[2])
        for child in ast.iter_child_nodes(statement):
            visit(child)

    for statement in node.body:
        visit(statement)
    return found


def _error(name: str, scope: dict[str, Any]) -> type[BaseException] | None:
    value: Any = scope.get(name, getattr(builtins, name, None))
    if value is None and name in homes("deltaloop.errors"):
        value = getattr(errors, name)
    return value if isinstance(value, type) and issubclass(value, BaseException) else None


def faults(public: PublicName) -> list[str]:
    """Say everything that is wrong with one docstring."""
    docstring, node = public.docstring, public.node
    if not docstring.strip():
        return ["no docstring"]
    found: list[str] = []
    first, *rest = docstring.splitlines()
    if not first.endswith("."):
        found.append("the first line does not end with a full stop")
    if re.search(r"[a-z\d)`]\. [A-Z`]", first):
        found.append("the first line is more than one sentence")
    if rest and rest[0].strip():
        found.append("no empty line after the first")
    parts = sections(docstring)
    known = _known_words(public)
    if not isinstance(node, ast.Module):
        described = entries(parts.get("Args", "")) | entries(parts.get("Attributes", ""))
        for name in described:
            found += [
                f"{each!r} is not a parameter" for each in re.split(r",\s*", name) if each.strip("`*") not in known
            ]
    found += _raises_faults(public, entries(parts.get("Raises", "")))
    found += _duration_faults(public, known)
    return found


def _raises_faults(public: PublicName, described: dict[str, str]) -> list[str]:
    found: list[str] = []
    scope = public.scope
    for names, when in described.items():
        unknown = [
            each for each in re.split(r",\s*", names) if _error(each.strip("`").rpartition(".")[2], scope) is None
        ]
        found += [f"Raises: {each!r} is not an exception" for each in unknown]
        if not when.strip():
            found.append(f"Raises: {names!r} does not say when")
    if isinstance(public.node, Function):
        around = public.docstring + (ast.get_docstring(public.owner) or "" if public.owner else "")
        for name in sorted(_raised(public.node)):
            error = _error(name, scope)
            if error is not None and issubclass(error, DeltaloopError) and not re.search(rf"\b{name}\b", around):
                found.append(f"{name} is raised and not documented")
    return found


def _duration_faults(public: PublicName, known: dict[str, str]) -> list[str]:
    around = public.docstring
    if isinstance(public.node, ast.ClassDef):
        around += " ".join(ast.get_docstring(each) or "" for each in public.node.body if isinstance(each, Function))
        around += " ".join(
            each.value.value
            for each in public.node.body
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str)
        )
    elif public.owner is not None:
        around += ast.get_docstring(public.owner) or ""
    if re.search(r"\bseconds?\b|\d m?s\b", around, re.IGNORECASE):
        return []
    durations = [name for name, kind in known.items() if DURATIONS.fullmatch(name) and re.match(r"float\b", kind)]
    return [f"{', '.join(durations)}: seconds, and nobody says so"] if durations else []


def main() -> None:
    """Print the count of each room, and what is wrong."""
    names = public_names()
    rooms = Counter(".".join(each.name.split(".")[:2]) for each in names)
    for room, count in sorted(rooms.items()):
        print(f"{count:5} {room}")
    wrong = [(each.name, fault) for each in names for fault in faults(each)]
    for name, fault in wrong:
        print(f"{name}: {fault}")
    good = len(names) - len({name for name, _ in wrong})
    print(f"{good} of {len(names)} public names have a docstring in the house form ({100 * good / len(names):.1f} %)")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
