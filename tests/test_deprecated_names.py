"""A name that was renamed still works for one minor version, and warns at the line that uses it."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

import deltaloop as dl
from deltaloop._internal.lazy_names import DEPRECATED, OTHERWISE_CALLED, lazy_names

ROOT = Path(__file__).parents[1]


def minor(version: str) -> tuple[int, int]:
    major, second, *_ = version.split(".")
    return int(major), int(second)


@pytest.mark.parametrize("old", DEPRECATED)
def test_an_old_name_is_the_new_one_and_warns_where_it_is_used(old: str) -> None:
    module, _, name = old.rpartition(".")
    new, until = DEPRECATED[old]
    with pytest.warns(DeprecationWarning, match=r"is called") as caught:
        found = getattr(importlib.import_module(module), name)
    (warning,) = caught
    assert str(warning.message) == f"{old} is called {new} now; deltaloop {until} no longer has the old name"
    assert warning.filename == __file__
    home, _, own = OTHERWISE_CALLED.get(old, new).rpartition(".")
    assert found is getattr(importlib.import_module(home), own)


@pytest.mark.parametrize("statement", ["dl.conditions", "from deltaloop import conditions"])
def test_each_use_warns_at_its_own_line(statement: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import deltaloop as dl\n\n{statement}\n\n\n{statement}\n")
    done = subprocess.run(
        [sys.executable, "-W", "always", str(program)], capture_output=True, text=True, timeout=50, check=True
    )
    places = {line.partition(": ")[0] for line in done.stderr.splitlines() if "DeprecationWarning" in line}
    assert places == {f"{program}:3", f"{program}:6"}


def test_a_name_goes_when_its_time_is_over_and_not_before_the_next_minor_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for old, (_, until) in DEPRECATED.items():
        assert minor(until) > minor(version), f"{old} was to go in {until}: remove it from DEPRECATED"
        assert until.endswith(".0")


def test_the_old_decorator_is_called_as_before() -> None:
    with pytest.warns(DeprecationWarning, match=r"is called deltaloop\.custom_resource now"):
        old = vars(dl)["__getattr__"]("resource_type")

    class Box:
        pass

    assert str(dl.ResourceType.of(old("example.com/v1", plural="boxes")(Box))) == "example.com/v1/Box"


def test_an_old_name_is_offered_by_nothing() -> None:
    assert not {old.rpartition(".")[2] for old in DEPRECATED if old.count(".") == 1} & {*dir(dl)}


def test_a_name_that_never_was_is_an_attribute_error_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("nonsense", "__path_hooks__"):
            assert not hasattr(dl, name)


def test_what_has_the_name_does_not_look_at_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEPRECATED, "deltaloop.Client", ("deltaloop.Manager", "9.0.0"))
    _, get, _ = lazy_names("deltaloop", str(dl.__file__))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert get("Client") is dl.Client
