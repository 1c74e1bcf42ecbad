"""``deltaloop`` command, which imports the module of a command only when that command is used."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Annotated, Any, Final, get_args

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

_OF_TYPE: Final = {Path: "FILE", float: "SECONDS", int: "NUMBER"}
_OF_WORD: Final = {"address": "HOST:PORT", "dir": "FOLDER", "load": "PATH", "manifests": "PATH", "port": "PORT"}


class _Command(TyperCommand):
    """Command with a help section for each heading."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [re.sub(r"^\{(.*)\}(?=$|\.)", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                name = record[0].partition(" <")[0] if parameter.param_type_name == "argument" else record[0]
                sections.setdefault(heading_of(parameter), []).append((name, record[1]))
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def heading_of(parameter: Any) -> str:
    """Return the heading of an argument or option in the help."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or "Options"


class _Commands(Mapping[str, Any]):
    """Commands by name. A lookup imports the command's module."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Any:
        module, _, attribute = self._places[name].partition(":")
        found = getattr(import_module(f"deltaloop.cli.{module}"), attribute)
        if not isinstance(found, typer.Typer):
            found, function = _typer(), found
            _add_metavars(function)
            found.command(name, cls=_Command)(function)
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


def _add_metavars(function: Callable[..., object]) -> None:
    """Set the placeholders for the values of a command's flags that declare none."""
    parameters = inspect.signature(function, eval_str=True).parameters
    function.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    for each in parameters.values():
        kind, flag = get_args(each.annotation)[:2]
        word = each.name.rpartition("_")[2]
        of_type = [shown for accepted, shown in _OF_TYPE.items() if accepted in _types(kind)]
        if str in _types(kind) or of_type:
            flag.metavar = flag.metavar or _OF_WORD.get(word) or [*of_type, word.upper()][0]


def _types(hint: Any) -> set[Any]:
    return {each for part in get_args(hint) for each in _types(part)} or {hint}


def _typer(**options: Any) -> typer.Typer:
    return typer.Typer(
        no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options
    )


app: typer.Typer = group(
    {
        "run": "run:run",
        "why": "why:why",
        "doctor": "doctor:doctor",
        "simulate": "simulate:simulate",
        "plan": "plan:plan",
        "snapshot": "snapshot:snapshot",
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
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Write, run, test and package Kubernetes controllers in Python."""
