"""``deltaloop new``: a project that passes its own tests and checks at once."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deltaloop.api.yaml_reader import read_yaml, read_yaml_documents
from deltaloop.cli.app import app
from deltaloop.cli.project.core.naming import ProjectNames
from deltaloop.errors import InvalidArgumentError
from tests.having import having

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = {*sys.modules}
    yield tmp_path
    for name in {*sys.modules} - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def run(*arguments: str) -> Result:
    importlib.invalidate_caches()
    return CliRunner().invoke(app, [*arguments])


def files(folder: Path) -> dict[str, str]:
    """Return what is written in each file; modules that were imported leave more, compiled."""
    found = [each for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc"]
    return {str(each.relative_to(folder)): each.read_text() for each in found}


@pytest.mark.nightly
@pytest.mark.real_time
def test_new_project_passes_its_tests_and_checks(folder: Path) -> None:
    done = run("new", "paint-operator", "--group", "paint.example.org")
    assert done.exit_code == 0, done.output
    project = folder / "paint-operator"
    assert "@" not in "".join(files(project)).replace("/", "")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "status"]
    tested = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    # The test of the page runs all of them.
    assert "1 passed, 4 deselected" in tested.stdout
    [step] = [line for line in files(project)[".github/workflows/ci.yaml"].splitlines() if "deltaloop package" in line]
    words = step.partition("run: deltaloop ")[2].split()
    words[1] = f"paint-operator/{words[1]}"
    words[words.index("--helm") + 1] = "paint-operator/chart"
    assert run(*words).exit_code == 0


def test_names_in_project_follow_from_project_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert run("new", "paint-operator", "--folder", "here").exit_code == 0
    made = files(folder / "here")
    assert not [path for path in made if "__pycache__" in path]
    assert sys.dont_write_bytecode is False
    assert {"paint_operator.py", "test_paint_operator.py", "chart/Chart.yaml", "README.md", "Containerfile"} <= {*made}
    assert read_yaml(made["chart/Chart.yaml"])["name"] == "paint-operator"
    [sample] = read_yaml_documents(made["sample.yaml"])
    assert (sample["apiVersion"], sample["kind"]) == ("example.com/v1alpha1", "Paint")
    jobs = read_yaml(made[".github/workflows/ci.yaml"])["jobs"]
    assert jobs["plan"]["steps"][-1]["run"].startswith("deltaloop plan paint_operator.py --from sample.yaml")
    assert "wheels" not in "".join(made.values())
    assert not [path for path, text in made.items() if "@name@" in text or "@module@" in text or "@Kind@" in text]


def test_new_project_can_use_wheel(folder: Path) -> None:
    wheel = folder / "deltaloop-0.2.0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    assert run("new", "paint", "--wheel", str(wheel)).exit_code == 0
    assert (folder / "paint" / "wheels" / wheel.name).read_bytes() == b"a wheel"
    made = {path: (folder / "paint" / path).read_text() for path in ("Containerfile", ".github/workflows/ci.yaml")}
    assert "COPY wheels wheels\n" in made["Containerfile"]
    assert all("--find-links wheels" in text for text in made.values())


def test_new_project_is_formatted_and_passes_linter(folder: Path) -> None:
    pytest.importorskip("ruff", reason="ruff, which the group `dev` brings, is missing")
    assert run("new", "a", "--kind", "LongerKind").exit_code == 0
    for what in (("format", "--check"), ("check", "--select", "E,F,I,UP,B")):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *what, "--line-length", "120", "--isolated", "."],
            cwd=folder / "a",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_existing_folder_is_not_changed(folder: Path) -> None:
    (folder / "paint").mkdir()
    (folder / "paint" / "mine").touch()
    done = run("new", "paint")
    assert isinstance(done.exception, InvalidArgumentError)
    assert done.exception.argument == "--folder"
    assert files(folder) == {"paint/mine": ""}


@pytest.mark.parametrize(
    ("name", "kind", "group", "argument"),
    [
        ("Paint", "", "example.com", "NAME"),
        ("7up", "", "example.com", "NAME"),
        ("queue", "", "example.com", "NAME"),
        ("pytest", "", "example.com", "NAME"),
        ("class", "", "example.com", "NAME"),
        ("paint", "paint", "example.com", "--kind"),
        ("paint", "", "example", "--group"),
        ("operator", "", "example.com", "NAME"),
    ],
)
def test_invalid_names_are_rejected(name: str, kind: str, group: str, argument: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument=argument)):
        ProjectNames.of(name, kind=kind, group=group)


def test_kind_follows_from_project_name() -> None:
    kinds = {name: ProjectNames.of(name).kind for name in ("paint", "paint-operator", "wall-paint-controller")}
    assert kinds == {"paint": "Paint", "paint-operator": "Paint", "wall-paint-controller": "WallPaint"}
