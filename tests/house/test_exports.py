"""What the packages say they export is there, once, and the façade has no name twice."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import deltaloop

PACKAGES = ["deltaloop"] + [
    module.name for module in pkgutil.walk_packages(deltaloop.__path__, "deltaloop.") if module.ispkg
]

# The same machinery for threads has the same names, without `async`, and is reached as `blocking.Client`.
MIRRORS = ("deltaloop.blocking",)


def exported(module: ModuleType) -> list[str]:
    return list(getattr(module, "__all__", []))


@pytest.mark.parametrize("name", PACKAGES)
def test_exported_names_exist_and_are_sorted_out(name: str) -> None:
    module = importlib.import_module(name)
    names = exported(module)
    assert sorted(set(names)) == sorted(names), "a name is exported twice"
    missing = [each for each in names if not hasattr(module, each)]
    assert not missing


def test_the_facade_exports_what_the_rooms_export_and_nothing_by_two_meanings() -> None:
    for name in exported(deltaloop):
        value = getattr(deltaloop, name)
        if isinstance(value, ModuleType):
            continue
        homes = {
            id(getattr(importlib.import_module(package), name))
            for package in PACKAGES[1:]
            if package not in MIRRORS and name in exported(importlib.import_module(package))
        }
        assert homes <= {id(value)}, f"{name} means different things in different rooms"


def test_the_facade_and_its_stub_say_the_same() -> None:
    stub = Path(str(deltaloop.__file__)).with_suffix(".pyi").read_text()
    promised = {
        (alias.asname, node.module)
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes: dict[str, str] = vars(deltaloop)["_HOME_OF"]
    assert promised == set(homes.items()) | {("kinds", "deltaloop.api"), ("blocking", "deltaloop")}
    listed = next(node for node in ast.parse(stub).body if isinstance(node, ast.Assign))
    assert ast.literal_eval(listed.value) == sorted(deltaloop.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        getattr(deltaloop, "Nonsense")  # noqa: B009 - the type checkers know that it is not there


def test_nothing_of_the_tests_or_the_command_is_in_the_facade() -> None:
    for name in exported(deltaloop):
        home = getattr(getattr(deltaloop, name), "__module__", "")
        assert not home.startswith(("deltaloop.testing.", "deltaloop.cli.")), name
