"""Loader of controllers and webhooks from ``module[:object]``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable
from importlib.machinery import PathFinder
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, cast, final

import typer

from deltaloop._internal.root_error import DeltaloopError
from deltaloop._internal.tracebacks import own_frames
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.runtime import Controller
from deltaloop.runtime.program.run import program_name
from deltaloop.webhooks import AdmissionWebhook, ConversionFunction
from deltaloop.webhooks.declaring import Webhook

TargetArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="MODULE[:OBJECT]",
        help="Module or file with controllers and webhooks, for example my_operator or operator.py:reconcile. OBJECT "
        "is a controller, a webhook, a list of them, or a function that returns these. Defaults to the whole module.",
    ),
]
_DECLARED: Final = (Controller, AdmissionWebhook, ConversionFunction)


@final
class LoadError(InvalidArgumentError):
    """A ``module[:object]`` cannot be used. The message contains the reason and a fix.

    Attributes:
        target: Given ``module[:object]``.
        subject: Module, file or object that is missing or invalid. Empty if the target has the wrong form.
    """

    def __init__(self, target: str, problem: str, *, subject: str = "") -> None:
        super().__init__(f"{target!r}: {problem}")
        self.target = target
        self.subject = subject


class LoadedModule(NamedTuple):
    """Declarations of a module: controllers and webhooks."""

    module: ModuleType
    controllers: tuple[Controller, ...]
    webhooks: tuple[Webhook, ...]


def target_name(target: str) -> str:
    """Return the default name of a program, which is the name of its module."""
    return program_name(target.partition(":")[0])


def load_declared(target: str) -> LoadedModule:
    """Import a module and return its controllers and webhooks, or raise LoadError.

    Args:
        target: ``package.module`` or ``path/to/file.py`` for all controllers and webhooks, or ``module:name`` for one
            object: a controller, a webhook, a list of controllers and webhooks, or a function without arguments that
            returns such an object.
    """
    module, attribute = import_target(target, "OBJECT, for example my_operator.controllers:reconcile")
    if attribute:
        return _declared_of(target, module, named_object(target, module, attribute))
    found = declared_in(module)
    if not found.controllers and not found.webhooks:
        problem = f"module {module.__name__} contains no controllers. Decorate a function with @dl.controller."
        raise LoadError(target, problem, subject=module.__name__)
    return found


def declared_in(module: ModuleType) -> LoadedModule:
    """Return the controllers and webhooks of a module, possibly none."""
    return _sorted(module, dict.fromkeys(value for value in vars(module).values() if isinstance(value, _DECLARED)))


def load_program(target: str) -> tuple[ModuleType, tuple[Controller, ...]]:
    """Import a module and return it together with its controllers."""
    found = load_declared(target)
    if not found.controllers:
        problem = f"module {found.module.__name__} contains only webhooks. Decorate a function with @dl.controller."
        raise LoadError(target, problem, subject=found.module.__name__)
    return found.module, found.controllers


def import_target(target: str, wanted: str) -> tuple[ModuleType, str]:
    """Import the module of a target, and return it with the name after the colon, or an empty string."""
    name, colon, attribute = target.partition(":")
    if not name or (colon and not attribute):
        raise LoadError(target, f"must be MODULE or MODULE:{wanted}.")
    return import_module(target, name), attribute


def import_module(target: str, name: str) -> ModuleType:
    """Import a module by name or file, or raise LoadError."""
    if name.endswith(".py"):
        return _import_file(target, Path(name))
    here = str(Path.cwd())
    if PathFinder.find_spec(name.partition(".")[0], [here]) is not None:
        _look_in(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            problem = f"module {error.name!r} does not exist in this folder and is not installed."
            raise LoadError(target, problem, subject=error.name) from None
        problem = f"module {name!r} requires {error.name!r}, which is not installed."
        raise LoadError(target, problem, subject=error.name or "") from error
    except Exception as error:
        raise _not_imported(target, f"module {name!r}", error) from error


def _not_imported(target: str, module: str, error: Exception) -> DeltaloopError:
    """Return the error of a failed import, with the lines of the program that caused it."""
    places = "".join(f"\n  {place}" for place in own_frames(error) if "importlib" not in place)
    if isinstance(error, DeltaloopError):
        error.add_note(f"raised by {module}:{places}")
        return error
    return LoadError(target, f"cannot import {module}: {type(error).__name__}: {error}{places}", subject=module)


def folder_of(target: str) -> Path:
    """Return the folder with the files of a program, and do not import the program."""
    name = target.partition(":")[0]
    if name.endswith(".py"):
        return Path(name).resolve().parent
    top = name.partition(".")[0]
    spec = PathFinder.find_spec(top, [str(Path.cwd())]) or PathFinder.find_spec(top)
    if spec is None:
        return Path.cwd()
    places = spec.submodule_search_locations
    return Path(next(iter(places))).resolve() if places else Path(spec.origin or "x").resolve().parent


def absolute(path: str | PathLike[str]) -> Path:
    return Path(path).resolve()


def _import_file(target: str, file: Path) -> ModuleType:
    if not file.is_file():
        raise LoadError(target, f"file {str(file)!r} does not exist.", subject=str(file))
    _look_in(str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise LoadError(target, f"{str(file)!r} must be a Python file.", subject=str(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[file.stem]
        raise _not_imported(target, repr(str(file)), error) from error
    return module


def _look_in(folder: str) -> None:
    """Add the program's folder to ``sys.path``, after the standard library and before installed packages.

    Otherwise a file that is named like a module of the standard library would replace it.
    """
    if folder in sys.path:
        return
    standard = {str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib")}
    places = [
        index
        for index, entry in enumerate(sys.path)
        if {str(Path(entry).resolve()), str(Path(entry).resolve().parent)} & standard
        and Path(entry).name not in ("site-packages", "dist-packages")
    ]
    sys.path.insert(places[-1] + 1 if places else len(sys.path), folder)


def named_object(target: str, module: ModuleType, attribute: str) -> object:
    """Return an object of a module by its name, which can contain dots."""
    value: object = module
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            known = sorted(name for name, found in vars(module).items() if isinstance(found, Controller))
            there = f" Its controllers: {', '.join(known)}." if known else ""
            raise LoadError(
                target, f"module {module.__name__} does not contain {attribute!r}.{there}", subject=attribute
            ) from None
    return value


def _declared_of(target: str, module: ModuleType, value: object) -> LoadedModule:
    if callable(value) and not isinstance(value, (*_DECLARED, type)):
        value = cast("Any", value)()
    if isinstance(value, _DECLARED):
        return _sorted(module, [value])
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        items = tuple(cast("Iterable[object]", value))
        if items and all(isinstance(item, _DECLARED) for item in items):
            return _sorted(module, items)
    kind = type(cast("Any", value)).__name__
    raise LoadError(
        target,
        f"must be a controller, a webhook, a list of these, or a function that returns these, got {kind}.",
        subject=kind,
    )


def _sorted(module: ModuleType, found: Iterable[object]) -> LoadedModule:
    values = tuple(found)
    return LoadedModule(
        module,
        tuple(value for value in values if isinstance(value, Controller)),
        tuple(value for value in values if isinstance(value, AdmissionWebhook | ConversionFunction)),
    )
