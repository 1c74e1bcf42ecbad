"""``deltaloop cel check`` and ``eval``: expressions of the Common Expression Language, on values from YAML or JSON."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

if TYPE_CHECKING:
    from deltaloop import cel

app: typer.Typer = typer.Typer(no_args_is_help=True, help="Check and evaluate expressions of Kubernetes' rules (CEL).")

_Version = Annotated[
    str | None,
    typer.Option(metavar="VERSION", help="Only what clusters of a version have, such as 1.33; else, everything."),
]
_Cost = Annotated[bool, typer.Option("--cost", help="Print what it costs, too, in cel-go's units.")]
_Expression = Annotated[str, typer.Argument(metavar="EXPRESSION", help="Such as 'self.replicas <= 5'.")]

# The first version whose rules are written in the language (KEP-2876, alpha).
_FIRST: Final = (1, 23)


@app.command()
def check(
    expression: _Expression,
    *,
    variable: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:TYPE]", help="A variable that it may name; of any type, if none is given."),
    ] = None,
    kubernetes: _Version = None,
    cost: _Cost = False,
) -> None:
    """Print the type of an expression; or what is wrong with it and where, with exit code 2."""
    from deltaloop.cel import UNLIMITED

    compiled = _compiled(expression, _declared(variable or ()), kubernetes)
    typer.echo(str(compiled.type))
    if cost:
        least, most = compiled.estimate_cost()
        typer.echo(f"cost: {least} to {'any' if most == UNLIMITED else most}")


@app.command("eval")
def evaluate(
    expression: _Expression,
    *,
    variable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A variable's value, as JSON or YAML; @FILE reads a file, @- standard input.",
        ),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="End with an error above this cost.", min=0)] = None,
    kubernetes: _Version = None,
    cost: _Cost = False,
) -> None:
    """Print the value of an expression as JSON; or its error, with exit code 2."""
    from deltaloop import cel

    bindings = dict(_bound(each) for each in variable or ())
    compiled = _compiled(expression, dict.fromkeys(bindings, cel.DYN), kubernetes)
    found = compiled.evaluate_with_cost(bindings, limit=cel.UNLIMITED if budget is None else budget)
    if found.error is not None:
        raise found.error
    typer.echo(json.dumps(_as_json(found.value), ensure_ascii=False))
    if cost:
        typer.echo(f"cost: {found.cost}")


def _compiled(expression: str, variables: Mapping[str, cel.Type], version: str | None) -> cel.CompiledExpression:
    from deltaloop.cel.faults import InvalidExpressionError
    from deltaloop.cel.kubernetes import kubernetes_environment

    since = None if version is None else _known(version)
    try:
        return kubernetes_environment(since).with_variables(variables).compile(expression)
    except InvalidExpressionError as error:
        typer.echo(str(error), err=True)  # it begins with ERROR, and shows where
        raise typer.Exit(2) from None


def _known(version: str) -> tuple[int, int]:
    from deltaloop.api.kubernetes_version import MINOR

    major, _, minor = version.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise typer.BadParameter(f"{version!r} is no version, such as 1.33")
    newest = tuple(int(part) for part in MINOR.split("."))
    if not _FIRST <= (int(major), int(minor)) <= newest:
        first = ".".join(map(str, _FIRST))
        raise typer.BadParameter(f"{version} is no version of Kubernetes that is known here: {first} to {MINOR} are")
    return int(major), int(minor)


def _declared(written: list[str] | tuple[()]) -> dict[str, cel.Type]:
    from deltaloop.cel.types import DYN, NAMED

    types = {**NAMED, "any": DYN}
    declared: dict[str, cel.Type] = {}
    for each in written:
        name, _, type_name = each.partition(":")
        if not _is_name(name):
            raise typer.BadParameter(f"{each!r} is not NAME[:TYPE]")
        if (type_name or "dyn") not in types:
            raise typer.BadParameter(f"{type_name!r} is none of {', '.join(sorted(types))}")
        declared[name] = types[type_name or "dyn"]
    return declared


def _is_name(written: str) -> bool:
    return all(part.isidentifier() for part in written.split("."))


def _bound(written: str) -> tuple[str, object]:
    from deltaloop.api.yaml_reader import read_yaml

    name, equals, value = written.partition("=")
    if not equals or not _is_name(name):
        raise typer.BadParameter(f"{written!r} is not NAME=VALUE")
    if not value.startswith("@"):
        return name, read_yaml(value, source=f"--variable {name}")
    source = "standard input" if value == "@-" else value[1:]
    try:
        text = sys.stdin.read() if value == "@-" else Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{source} cannot be read: {error}") from None
    return name, read_yaml(text, source=source)


def _as_json(value: object) -> object:
    """Return a value as JSON has it; what JSON has no word for is a text."""
    from deltaloop import cel
    from deltaloop.cel.libraries.instants import duration_text, timestamp_text
    from deltaloop.cel.types import runtime_type, type_name

    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case cel.Timestamp():
            return timestamp_text(value)
        case cel.Duration():
            return duration_text(value)
        case cel.OptionalValue():
            return _as_json(value.value)
        case cel.Type():
            return type_name(value)
        case list():
            return [_as_json(item) for item in cast("list[object]", value)]
        case dict():
            return {str(key): _as_json(item) for key, item in cast("dict[object, object]", value).items()}
        case None | bool() | int() | float() | str():
            return value
        case _:
            return type_name(runtime_type(value))
