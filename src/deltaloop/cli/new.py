"""``deltaloop new``: write a new project."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cli.packaging import files
from deltaloop.cli.packaging.declared import PackageCommand, declared_program
from deltaloop.cli.project.core.naming import FILES, WHEELS, ProjectNames, project_files
from deltaloop.version import VERSION

CHART = "chart"
"""Folder for the project's chart."""


def make_project(names: ProjectNames, folder: Path, *, wheel: Path | None = None) -> list[str]:
    """Write a project to a missing or empty folder, or raise InvalidArgumentError; return the paths of its files."""
    if (folder.is_dir() and any(folder.iterdir())) or (folder.exists() and not folder.is_dir()):
        raise InvalidArgumentError(f"must be a new or empty folder, got {folder}.", argument="--folder")
    if wheel is not None and not (wheel.is_file() and wheel.suffix == ".whl"):
        raise InvalidArgumentError(
            f"must be a file like deltaloop-VERSION-py3-none-any.whl, got {wheel}.", argument="--wheel"
        )
    made = project_files(names, read_templates(), version=VERSION, with_wheel=wheel is not None)
    files.write(folder, made)
    if wheel is not None:
        (folder / WHEELS).mkdir()
        shutil.copy(wheel, folder / WHEELS)
    with _no_bytecode():
        chart = declared_program(PackageCommand(target=str(folder / f"{names.module}.py"))).chart()
    files.write(folder / CHART, chart)
    return [*made, f"{CHART}/"]


@contextmanager
def _no_bytecode() -> Generator[None]:
    """Import modules without writing ``__pycache__``."""
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def read_templates() -> dict[str, str]:
    there = resources.files("deltaloop.cli.project") / "template"
    return {name: (there / name).read_text(encoding="utf-8") for name in FILES.values()}


def new(
    name: Annotated[str, typer.Argument(help="Name of the project, for example greeter or paint-operator.")],
    *,
    kind: Annotated[
        str,
        typer.Option(help="Kind of the custom resource, for example Greeter. Derived from NAME by default."),
    ] = "",
    group: Annotated[str, typer.Option(help="API group of the kind. Use a domain that you own.")] = "example.com",
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the project. Defaults to NAME.")
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option(help="Wheel of deltaloop to copy into the project and to install from there.")
    ] = None,
) -> None:
    """Create a project: a kind as a class, its controller, tests, chart, Containerfile and CI workflow."""
    where = folder if folder is not None else Path(name)
    for path in make_project(ProjectNames.of(name, kind=kind, group=group), where, wheel=wheel):
        typer.echo(where / path)
