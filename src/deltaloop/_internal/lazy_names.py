"""Names of other modules that a module hands out, each imported when it is first used.

Which names these are stands once, in the module's stub, which type checkers read, too: ``from a.b import C as C``, each
on a line of its own. A program that is frozen into one file has to take the ``.pyi`` files along.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # typing itself would be most of what an import of the façade costs
if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_names(module: str, file: str | None) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return a module's ``__all__``, ``__getattr__`` and ``__dir__``: the names that its stub imports.

    Args:
        module: The module's ``__name__``.
        file: The module's ``__file__``; the stub is beside it.
    """
    homes = read_homes(f"{file}".rpartition(".")[0] + ".pyi")

    def __getattr__(name: str) -> object:  # noqa: N807 - it becomes the module's
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = homes[name]
        value: object = import_module(f"{home}.{name}") if home == module else _imported(home, name)
        setattr(sys.modules[module], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807 - as above
        return sorted({*vars(sys.modules[module]), *homes})

    return list(homes), __getattr__, __dir__


def read_homes(stub: str) -> dict[str, str]:
    """Read from which module a stub takes each of its names."""
    with open(stub, encoding="utf-8") as lines:  # noqa: PTH123 - pathlib alone would double the time of an import
        words = [line.split() for line in lines if line.startswith("from ")]
    return {word[-1]: word[1] for word in words}


def _imported(home: str, name: str) -> object:
    """Do what ``from home import name`` does; the name may be a module in a package."""
    value: object = getattr(__import__(home, fromlist=[name]), name)
    return value
