"""The ``deltaloop`` command. A command's module is imported when the command is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version as distribution_version
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
import typer.main
from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer.core import TyperCommand


def group(commands: Mapping[str, str]) -> typer.Typer:
    """Make a group of commands.

    Args:
        commands: ``MODULE:NAME`` of each command's function, or of another group, in the order of the help.
    """

    class Commands(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
            return [*commands]

        def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:  # noqa: ARG002 - same
            if cmd_name not in commands:
                return None
            module, _, name = commands[cmd_name].partition(":")
            found = getattr(import_module(f"deltaloop.cli.{module}"), name)
            if not isinstance(found, typer.Typer):
                found, function = _typer(), found
                found.command(cmd_name)(function)
            command: TyperCommand | TyperGroup = cast("Any", typer.main.get_command(found))
            command.name = cmd_name
            return command

    return _typer(cls=Commands)


def _typer(**options: Any) -> typer.Typer:
    return typer.Typer(
        no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options
    )


app = group(
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
    version: Annotated[  # done while it is parsed
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Controllers for Kubernetes in Python: run them, see why they ran, and try them on an embedded API server."""
