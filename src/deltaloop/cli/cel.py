"""``deltaloop cel check`` and ``eval``: CEL expressions with values from YAML or JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deltaloop.cli.app import group

if TYPE_CHECKING:
    from deltaloop import cel

app: typer.Typer = group({"check": "cel:check", "eval": "cel:evaluate"})

_Version = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="Kubernetes version that limits the available functions, for example 1.33. Defaults to all.",
    ),
]
_Cost = Annotated[bool, typer.Option("--cost", help="Also print the cost in cel-go's units.")]
_Expression = Annotated[str, typer.Argument(metavar="EXPRESSION", help="Expression, for example 'self.replicas <= 5'.")]

# First Kubernetes version with CEL rules (KEP-2876, alpha).
_FIRST: Final = (1, 23)


@app.callback()
def expressions() -> None:
    """Check and evaluate expressions in CEL, the language of Kubernetes' validation rules."""


def check(
    expression: _Expression,
    *,
    variable: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:TYPE]", help="Variable of the expression. TYPE is dyn by default. Repeatable."),
    ] = None,
    kubernetes: _Version = None,
    cost: _Cost = False,
) -> None:
    """Print the type of an expression.

    If the expression is invalid, print the errors with their positions, and exit with code 2.
    """
    from deltaloop.cel import UNLIMITED

    compiled = _compiled(expression, _declared(variable or ()), kubernetes)
    typer.echo(str(compiled.type))
    if cost:
        least, most = compiled.estimate_cost()
        typer.echo(f"cost: {least} to {'any' if most == UNLIMITED else most}")


def evaluate(
    expression: _Expression,
    *,
    variable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Variable with its value in JSON or YAML. @FILE reads a file, @- standard input. Repeatable.",
        ),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Maximum cost. A higher cost is an error.", min=0)] = None,
    kubernetes: _Version = None,
    cost: _Cost = False,
) -> None:
    """Print the value of an expression as JSON.

    If the evaluation fails, print the error, and exit with code 2.
    """
    from deltaloop import cel
    from deltaloop.cel.json_values import as_json
    from deltaloop.cel.operators import shown_key

    bindings = dict(_bound(each) for each in variable or ())
    compiled = _compiled(expression, dict.fromkeys(bindings, cel.DYN), kubernetes)
    found = compiled.evaluate_with_cost(bindings, limit=cel.UNLIMITED if budget is None else budget)
    if found.error is not None:
        raise found.error
    typer.echo(json.dumps(as_json(found.value, _leaf, shown_key), ensure_ascii=False))
    if cost:
        typer.echo(f"cost: {found.cost}")


def _compiled(expression: str, variables: Mapping[str, cel.Type], version: str | None) -> cel.CompiledExpression:
    from deltaloop.cel.errors import InvalidExpressionError
    from deltaloop.cel.kubernetes import kubernetes_environment

    since = None if version is None else _known(version)
    try:
        return kubernetes_environment(since).with_variables(variables).compile(expression)
    except InvalidExpressionError as error:
        typer.echo(str(error), err=True)  # it begins with ERROR and shows the position
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
    declared: dict[str, cel.Type] = {}
    for each in written:
        name, _, type_name = each.partition(":")
        if not _is_name(name):
            raise typer.BadParameter(f"{each!r} is not NAME[:TYPE]")
        declared[name] = _type(type_name or "dyn")
    return declared


def _type(written: str) -> cel.Type:
    """Parse a type as ``check`` prints it: ``int``, ``list(string)``, ``map(string, list(int))``, ``net.IP``."""
    from deltaloop.cel.types import DYN, NAMED, list_of, map_of, optional_of

    types = {**NAMED, **_kubernetes_types(), "any": DYN}
    if written in types:
        return types[written]
    name, _, rest = written.partition("(")
    match name, _apart(rest.removesuffix(")")) if rest.endswith(")") else []:
        case "list", [item]:
            return list_of(_type(item))
        case "map", [key, value]:
            return map_of(_type(key), _type(value))
        case "optional_type", [value]:
            return optional_of(_type(value))
        case _:
            pass
    known = [*sorted(types), "list(TYPE)", "map(TYPE, TYPE)", "optional_type(TYPE)"]
    raise typer.BadParameter(f"{written!r} is none of {', '.join(known)}")


def _kubernetes_types() -> dict[str, cel.Type]:
    from deltaloop.cel.kubernetes.addresses import CIDR, IP, URL
    from deltaloop.cel.kubernetes.quantities import QUANTITY
    from deltaloop.cel.kubernetes.versions import SEMVER

    return {each.name: each for each in (CIDR, IP, QUANTITY, SEMVER, URL)}


def _apart(written: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts, depth = [""], 0
    for sign in written:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


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


def _leaf(value: object, path: str) -> object:  # noqa: ARG001
    """Convert a value to JSON. Values without a JSON form become strings."""
    from deltaloop.cel.json_values import plain_json
    from deltaloop.cel.types import Type, runtime_type, type_name

    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Type):
        return type_name(value)
    found = plain_json(value)
    if found is not None or value is None:
        return found
    return str(value) if "__str__" in vars(type(value)) else type_name(runtime_type(value))
