"""Seeded bugs as edits: a class of ours with a few pieces of its code replaced.

A bug is written as the change that would bring it about, so no class has to be open to subclasses for its sake: the
class is made anew from its own source, and so are those of its bases that the change touches. An edit whose text is not
found, or is found twice, is an error: the bug would not be what it says.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from functools import cache
from textwrap import dedent
from types import ModuleType
from typing import Any, TypeVar, cast, get_origin

T = TypeVar("T")


def edited(name: str, standing: type[T], *edits: tuple[str, str], what: str = "") -> type[T]:
    """Return a class like ``standing`` with other code.

    Args:
        name: What the class is called.
        standing: The class as it stands.
        edits: Pieces of its code, or of its bases', each of which occurs once, and what stands there instead.
        what: What is wrong with it, in one sentence.
    """
    left = dict(edits)
    made: dict[type, type] = {}
    original = cast("type[T]", get_origin(standing) or standing)
    for part in reversed(original.__mro__):
        if not part.__module__.startswith("deltaloop."):
            continue
        here = [old for old in left if old in _source_of(part)]
        if here or any(base in made for base in part.__bases__):
            source = _replaced(name, _source_of(part), ((old, left.pop(old)) for old in here))
            namespace = vars(sys.modules[part.__module__]) | {old.__name__: new for old, new in made.items()}
            exec(compile(source, f"<{name}>", "exec", annotations.compiler_flag), namespace)
            made[part] = namespace[part.__name__]
    if left:
        raise ValueError(f"{name}: {original.__name__} does not say {[*left]}")
    mutant = cast("type[T]", made[original])
    mutant.__name__ = mutant.__qualname__ = name
    mutant.__doc__ = what or mutant.__doc__
    return mutant


def _replaced(name: str, source: str, edits: Iterable[tuple[str, str]]) -> str:
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(f"{name}: the code says {old!r} more than once")
        source = source.replace(old, new)
    return source


@cache
def _source_of(part: type) -> str:
    return dedent(inspect.getsource(part))


def edited_module(module: ModuleType, *edits: tuple[str, str]) -> dict[str, Any]:
    """Return the names of a module like this one with other code, for bugs that are not in one class.

    Args:
        module: The module as it stands.
        edits: Pieces of its code, each of which occurs once, and what stands there instead.
    """
    namespace = {**vars(module)}
    exec(
        compile(_replaced(module.__name__, inspect.getsource(module), edits), "<edited>", "exec", dont_inherit=True),
        namespace,
    )
    return namespace
