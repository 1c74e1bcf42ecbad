"""``deltaloop`` command, which imports the module of a command only when that command is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version as distribution_version
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup


class _Commands(Mapping[str, Any]):
    """Commands by name. A lookup imports the command's module."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = self._places[name].partition(":")
        found = getattr(import_module(f"deltaloop.cli.{module}"), attribute)
        if not isinstance(found, typer.Typer):
            found, function = _typer(), found
            found.command(name)(function)
        command: Any = typer.main.get_command(found)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def group(places: Mapping[str, str]) -> typer.Typer:
    """Create a group of commands from ``MODULE:NAME`` of each command's function or nested group, in order."""

    class Group(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands: Any = _Commands(places)

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
            return [*places]

    return _typer(cls=Group)


def _typer(**options: Any) -> typer.Typer:
    return typer.Typer(
        no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options
    )


app: typer.Typer = group(
    {
        "run": "run:run",
        "why": "why:why",
        "simulate": "simulate:simulate",
        "generate": "generate:app",
        "new": "new:new",
        "package": "package:package",
        "migrate-storage": "migrate_storage:migrate_storage",
        "apiserver": "apiserver:apiserver",
        "leader-elect": "leader_elect:leader_elect",
        "cel": "cel:app",
        "demo": "demo.run:demo",
    }
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(distribution_version("deltaloop"))
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[  # its callback uses it
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Controllers for Kubernetes in Python: run them, see why they ran, and try them on an embedded API server."""
