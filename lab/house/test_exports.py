"""What the packages hand out is there, under one meaning; the façade is small, and all errors are in one place."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest
from tools.public_names import definition, homes, packages

import deltaloop
from deltaloop.errors import DeltaloopError

SOURCE = Path(str(deltaloop.__file__)).parent

# The same machinery for threads has the same names, without `async`, and is reached as `blocking.Client`.
MIRRORS = ("deltaloop.blocking",)

# Upstream has both under this name: the loop that empties an informer's queue, and what reconciles.
OTHER_IDEAS = {("deltaloop.cache", "Controller")}

# Names that a controller's author writes; every one is a promise.
MOST = 105


def value(package: str, name: str) -> object:
    return getattr(importlib.import_module(package), name)


@pytest.mark.parametrize("package", packages())
def test_exported_names_exist(package: str) -> None:
    for name in homes(package):
        value(package, name)
        module = importlib.import_module(definition(package, name))
        assert module.__name__.endswith(f".{name}") or hasattr(module, name), name
    assert set(homes(package)) <= set(dir(importlib.import_module(package)))


def test_facade_size_is_bounded() -> None:
    assert len(homes("deltaloop")) <= MOST
    assert value("deltaloop", "__all__") == list(homes("deltaloop"))


def test_facade_name_is_written_in_at_most_three_places() -> None:
    written: dict[str, list[str]] = {name: [definition("deltaloop", name)] for name in homes("deltaloop")}
    for package in packages():
        for name in homes(package):
            if package not in MIRRORS and name in written and definition(package, name) == written[name][0]:
                written[name].append(package)
    assert {name: places for name, places in written.items() if len(places) > 3} == {}
    assert not [path for path in SOURCE.glob("*/__init__.py") if "__all__ = [" in path.read_text()]


def test_facade_name_has_one_meaning() -> None:
    for name in homes("deltaloop"):
        here = value("deltaloop", name)
        if isinstance(here, ModuleType):
            continue
        others = [each for each in packages() if each not in MIRRORS and name in homes(each)]
        others = [each for each in others if (each, name) not in OTHER_IDEAS]
        assert [each for each in others if value(each, name) is not here] == [], name


def test_lazy_name_does_not_shadow_module() -> None:
    # Importing a submodule sets an attribute of its package, and the name would mean the module from then on.
    lazy = [each for each in packages() if "lazy_names" in vars(importlib.import_module(each))]
    assert len(lazy) > 3
    for package in lazy:
        beside = {each.name for each in pkgutil.iter_modules(getattr(importlib.import_module(package), "__path__", []))}
        for name, home in homes(package).items():
            bound = f"import {name} as {name}\n" in Path(str(importlib.import_module(package).__file__)).read_text()
            assert name not in beside or home == package or bound, f"{package}.{name}"


def test_each_facade_module_can_be_imported_by_name() -> None:
    modules = [name for name in homes("deltaloop") if isinstance(value("deltaloop", name), ModuleType)]
    assert len(modules) > 10
    for name in modules:
        assert importlib.import_module(f"deltaloop.{name}") is value("deltaloop", name)


def test_all_errors_are_exported_in_one_module() -> None:
    defined: dict[str, str] = {}
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE)
        if inside.parts[0] in {"cli", "schemas"} or inside.parts[:2] == ("apiserver", "core"):
            continue  # they end a command, or become an answer on the wire
        module = ".".join(["deltaloop", *inside.with_suffix("").parts]).removesuffix(".__init__")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                cls = getattr(importlib.import_module(module), node.name)
                if issubclass(cls, DeltaloopError):
                    defined[node.name] = module
    listed = {name: definition("deltaloop.errors", name) for name in homes("deltaloop.errors")}
    assert listed == defined | {"ManifestError": "deltaloop.apiserver.core.controllers.manifests"}
    for package in packages():
        if package not in ("deltaloop", "deltaloop.errors"):
            elsewhere = [name for name in homes(package) if name in listed]
            assert not elsewhere, f"{package} hands out errors, too"


def test_unknown_name_raises_attribute_error() -> None:
    for module in (deltaloop, importlib.import_module("deltaloop.errors")):
        with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
            getattr(module, "Nonsense")  # noqa: B009 - the type checkers know that it is not there


def test_facade_contains_no_testing_or_cli_names() -> None:
    for name in homes("deltaloop"):
        assert not f"{definition('deltaloop', name)}.".startswith(("deltaloop.testing.", "deltaloop.cli.")), name
