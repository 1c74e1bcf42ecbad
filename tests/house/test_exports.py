"""What the packages say they export is there, once, and the façade has no name twice."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import deltaloop

PACKAGES = ["deltaloop"] + [
    module.name for module in pkgutil.walk_packages(deltaloop.__path__, "deltaloop.") if module.ispkg
]


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
            if name in exported(importlib.import_module(package))
        }
        assert homes <= {id(value)}, f"{name} means different things in different rooms"


def test_nothing_of_the_tests_or_the_command_is_in_the_facade() -> None:
    for name in exported(deltaloop):
        home = getattr(getattr(deltaloop, name), "__module__", "")
        assert not home.startswith(("deltaloop.testing.", "deltaloop.cli.")), name
