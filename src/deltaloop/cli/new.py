"""``deltaloop new``: write a new project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltaloop.cli.project.core.naming import ProjectNames
from deltaloop.cli.project.making import make_project


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
