"""How often the tests touch what is private in ``src``: names with one underscore of our own modules and classes.

Counted are imports of such names; accesses ``x._name``, where something of ours has a ``_name`` and no class of the
same test file has one of its own; overrides and uses of what a test's class inherits from a class of ours; and names in
strings, where ``getattr`` and its like look them up. A test that needs one of them breaks when it is renamed, so it
should rather use what the class offers to everybody. (Seeded bugs that are edits of the code, lab/mutants/edited.py,
quote the lines that they change; such a quotation is no use of a name.)

``python -m lab.house.private_names`` lists them by file.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What a NamedTuple offers to everybody begins with an underscore, too.
_PRIVATE = re.compile(r"_(?!replace$|asdict$|fields$|make$)[A-Za-z]\w*")
_IN_SRC = re.compile(r"(?:\b(?:self|cls)\.|\b(?:def|class) |^ *)(_[A-Za-z]\w*)", re.MULTILINE)
_OF_OTHERS = re.compile(
    r"(?<!\bself)(?<!\bcls)\.(_[A-Za-z]\w*)|\"(_[A-Za-z]\w*)\"|^ *(?:from .* import.* )?(_[A-Za-z]\w*)(?: as \w+)?,?$",
    re.MULTILINE,
)
_OF_ITSELF = re.compile(r"\b(?:self|cls)\.(_[A-Za-z]\w*)|\bdef (_[A-Za-z]\w*)")
_HEIR = re.compile(r"^ *class \w+\(", re.MULTILINE)
_BY_STRING = frozenset({"getattr", "setattr", "hasattr", "delattr", "object", "attrgetter", "methodcaller"})
_OWN = frozenset({"self", "cls"})


@dataclass
class _Module:
    """What one file defines and imports."""

    name: str
    tree: ast.Module
    classes: dict[str, ast.ClassDef] = field(default_factory=dict[str, ast.ClassDef])
    imported: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    own: frozenset[str] = frozenset()


@cache
def _module(name: str) -> _Module | None:
    base = (ROOT / "src" if name.startswith("deltaloop") else ROOT).joinpath(*name.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return _read(name, path.read_text()) if path.exists() else None


def _read(name: str, text: str) -> _Module:
    module = _Module(name, ast.parse(text))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            module.classes.setdefault(node.name, node)
        elif isinstance(node, ast.ImportFrom) and node.module:
            module.imported |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    module.own = frozenset[str]().union(*map(_defined, module.classes.values()))
    return module


def _defined(node: ast.ClassDef) -> frozenset[str]:
    """Return the private names that a class has: methods and attributes."""
    names: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(inner.name)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and _is_own(inner.value):
            names.add(inner.attr)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            names.add(inner.id)
    return frozenset(filter(_PRIVATE.fullmatch, names))


@cache
def _private_in_src() -> frozenset[str]:
    texts = (path.read_text() for path in (ROOT / "src").rglob("*.py"))
    return frozenset(name for text in texts for name in _IN_SRC.findall(text) if _PRIVATE.fullmatch(name)) - {
        "_internal"
    }


def _inherited(module: _Module, node: ast.ClassDef) -> frozenset[str]:
    """Return the private names that a class has from classes of ``src``."""
    found: frozenset[str] = frozenset()
    for base in node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(name, ast.Name) and name.id != node.name:
            place, called = module.imported.get(name.id, (module.name, name.id))
            there = _module(place)
            if there is not None and called in there.classes:
                parent = there.classes[called]
                found |= _inherited(there, parent)
                if place.startswith("deltaloop"):
                    found |= _defined(parent)
    return found


def _touched(module: _Module, node: ast.AST, inherited: frozenset[str]) -> Iterator[str]:
    """Yield each private name of ``src`` that is touched below a node, as often as it is."""
    for inner in ast.iter_child_nodes(node):
        has = inherited
        if isinstance(inner, ast.ClassDef):
            has = _inherited(module, inner)
            functions = (part for part in inner.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            yield from (function.name for function in functions if function.name in has)
        elif isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("deltaloop"):
            parts = [
                *(inner.module or "").removeprefix("deltaloop._internal").split("."),
                *(alias.name for alias in inner.names),
            ]
            yield from filter(_PRIVATE.fullmatch, parts)
        elif isinstance(inner, ast.Attribute) and _PRIVATE.fullmatch(inner.attr):
            is_of_ours = inner.attr in inherited
            if not (is_of_ours or _is_own(inner.value) or inner.attr in module.own):
                is_of_ours = inner.attr in _private_in_src()
            yield from [inner.attr] if is_of_ours else []
        elif isinstance(inner, ast.Call):
            called = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            named = (
                [each.value for each in inner.args if isinstance(each, ast.Constant)] if called in _BY_STRING else []
            )
            yield from (name for name in named if isinstance(name, str) and name in _private_in_src())
        yield from _touched(module, inner, has)


def _is_own(value: ast.expr) -> bool:
    """Tell whether this is ``self``, ``cls`` or ``super()``."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in _OWN


def _is_worth_a_look(text: str) -> bool:
    """Tell whether a module may touch anything: it takes twenty times as long to parse it."""
    looks = [_OF_OTHERS, _OF_ITSELF] if _HEIR.search(text) else [_OF_OTHERS]
    return any(name in _private_in_src() for look in looks for names in look.findall(text) for name in names)


def touched(name: str, text: str) -> Counter[str]:
    """Return the private names of ``src`` that a module touches, and how often."""
    if not _is_worth_a_look(text):
        return Counter()
    module = _read(name, text)
    return Counter(_touched(module, module.tree, frozenset()))


def count() -> dict[str, Counter[str]]:
    """Return the private names that each module of the tests touches."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    counted = {str(path.relative_to(ROOT)): touched(path.stem, path.read_text()) for path in paths}
    return {name: found for name, found in counted.items() if found}


if __name__ == "__main__":
    everything = sorted(count().items(), key=lambda item: -item[1].total())
    for name, names in everything:
        print(names.total(), name, *(f"{one}:{many}" for one, many in names.most_common()))
    print(sum(names.total() for _, names in everything))
