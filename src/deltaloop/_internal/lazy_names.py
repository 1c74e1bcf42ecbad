"""Lazy imports for the public names of a module, which its stub lists (``from a.b import C as C``).

A program that is bundled into one file must include the ``.pyi`` files.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # importing typing would dominate the import time of deltaloop
if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_names(module: str, file: str | None) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a module's ``__getattr__`` and ``__dir__`` for the names in the stub next to its file."""
    stubs: list[str] = []

    def stub() -> str:
        if not stubs:
            stubs.append(_read(f"{file}".rpartition(".")[0] + ".pyi"))
        return stubs[0]

    def __getattr__(name: str) -> object:  # noqa: N807 - becomes a module function
        if name == "__all__":
            return _names(stub())
        home = _home(stub(), name)
        if not home:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value: object = import_module(f"{home}.{name}") if home == module else _imported(home, name)
        setattr(sys.modules[module], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807 - same
        return sorted({*vars(sys.modules[module]), *_names(stub())})

    return __getattr__, __dir__


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stub:  # noqa: PTH123 - importing pathlib would double the import time
        return stub.read()


def _names(stub: str) -> list[str]:
    return [line.split()[-1] for line in stub.splitlines() if line.startswith("from ")]


def _home(stub: str, name: str) -> str:
    # A search is faster than splitting the text.
    line, found, _ = stub.partition(f" as {name}\n")
    return line.rpartition("from ")[2].partition(" ")[0] if found else ""


def _imported(home: str, name: str) -> object:
    value: object = getattr(__import__(home, fromlist=[name]), name)
    return value
