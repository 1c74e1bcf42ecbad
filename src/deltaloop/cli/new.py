"""``deltaloop new``: write a new project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deltaloop.cli.project.core.naming import ProjectNames
from deltaloop.cli.project.making import make_project


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the project, such as greeter or paint-operator.")
    ],
    *,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="Kind of its objects. By default derived from the name.")
    ] = "",
    group: Annotated[
        str, typer.Option(metavar="GROUP", help="API group of the kind, a domain that you own.")
    ] = "example.com",
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the project. By default NAME.")
    ] = None,
    wheel: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Wheel of deltaloop, which is copied into the project and installed from there."
        ),
    ] = None,
) -> None:
    """Write a new project: a kind as a class, its controller, tests, chart, Containerfile, and a file for CI."""
    where = folder if folder is not None else Path(name)
    for path in make_project(ProjectNames.of(name, kind=kind, group=group), where, wheel=wheel):
        typer.echo(where / path)
