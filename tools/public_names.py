"""Which names are public, and where each is defined: what a package's ``__init__``, or its stub, imports ``as`` itself.

The façade, its faces (``errors``, ``predicates``, ``sources``, ``wait``) and the rooms are read the same way. None has
a second list of its names.
"""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
from functools import cache
from pathlib import Path

import deltaloop

FACES = ("errors", "predicates", "sources", "wait")
INTERNAL = frozenset({"_internal", "cli", "schemas", "types"})
"""Packages without public names: commands, what only the embedded server reads, and what only type checkers do."""


@cache
def packages() -> list[str]:
    """List deltaloop, its faces and its packages, by dotted name."""
    inner = [module.name for module in pkgutil.walk_packages(deltaloop.__path__, "deltaloop.") if module.ispkg]
    return ["deltaloop", *(f"deltaloop.{face}" for face in FACES), *inner]


def is_internal(package: str) -> bool:
    """Tell whether a package has no public names."""
    return not INTERNAL.isdisjoint(package.split(".")[1:2])


def _source(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    return Path(str(spec.origin if spec else None))


@cache
def homes(package: str) -> dict[str, str]:
    """Return a package's public names in their order, each with the module that the package takes it from."""
    source = _source(package)
    stub = source.with_suffix(".pyi")
    return {
        alias.name: str(node.module)
        for node in ast.parse((stub if stub.exists() else source).read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }


@cache
def definition(package: str, name: str) -> str:
    """Return the module that defines a package's public name; of a module, that of itself."""
    home = homes(package)[name]
    if home not in packages():
        return home
    if home != package and name in homes(home):
        return definition(home, name)
    inner = _source(home).parent / name
    return f"{home}.{name}" if inner.is_dir() or inner.with_suffix(".py").exists() else home
