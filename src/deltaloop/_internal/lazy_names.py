"""Lazy imports for the public names of a module, which its stub lists (``from a.b import C as C``).

A program that is bundled into one file must include the ``.pyi`` files.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # importing typing would dominate the import time of deltaloop
if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_names(module: str, file: str | None) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return a module's ``__all__``, ``__getattr__`` and ``__dir__`` for the names in the stub next to its file."""
    homes = read_homes(f"{file}".rpartition(".")[0] + ".pyi")

    def __getattr__(name: str) -> object:  # noqa: N807 - becomes a module function
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = homes[name]
        value: object = import_module(f"{home}.{name}") if home == module else _imported(home, name)
        setattr(sys.modules[module], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807 - same
        return sorted({*vars(sys.modules[module]), *homes})

    return list(homes), __getattr__, __dir__


def read_homes(stub: str) -> dict[str, str]:
    with open(stub, encoding="utf-8") as lines:  # noqa: PTH123 - importing pathlib would double the import time
        words = [line.split() for line in lines if line.startswith("from ")]
    return {word[-1]: word[1] for word in words}


def _imported(home: str, name: str) -> object:
    value: object = getattr(__import__(home, fromlist=[name]), name)
    return value
