"""Flags from the fields of an options class, with their names, types, defaults and documentation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, cast, get_args, get_origin, get_type_hints

import typer

_SHORT: Final = {"namespace": ("-n",)}
_METAVARS: Final = (
    ("_address", "HOST:PORT"),
    ("_url", "URL"),
    ("_dir", "FOLDER"),
    ("kubeconfig", "FILE"),
    ("load", "PATH"),
    ("version", "VERSION"),
    ("image", "IMAGE"),
)
_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*(?:\n     .*)*)", re.MULTILINE)


def with_flags_of(cls: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the ``**flags`` of a command with flags for the other fields of a dataclass."""

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = {each.name for each in own}
        made = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=_default(each), annotation=hint)
            for each in fields(cls)
            if each.name not in named
            for hint in [Annotated[_flag_type(cls, each), option_of(cls, each.name)]]
        ]
        parameters = sorted([*own[:1], *made, *own[1:]], key=lambda each: each.kind)
        setattr(function, "__signature__", signature.replace(parameters=parameters))  # noqa: B010 - functions declare none
        function.__annotations__ = {each.name: each.annotation for each in parameters}
        return function

    return declare


def values_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Convert flag values to option values. Lists of repeatable flags become tuples."""
    return {name: tuple(cast("list[Any]", each)) if isinstance(each, list) else each for name, each in flags.items()}


def option_of(cls: type[Any], name: str) -> Any:
    """Return the flag of a dataclass field."""
    field = next(each for each in fields(cls) if each.name == name)
    kind: Any = _flag_type(cls, field)
    flag = flag_name(name)
    if field.default is True:
        return typer.Option(f"{flag}/--no-{flag[2:]}", help=help_of(cls, name))
    of_type = {float: "SECONDS", str: "NAME", str | None: "NAME", Path | None: "FILE", list[Path]: "FILE"}.get(kind)
    metavar = next((shown for end, shown in _METAVARS if name.endswith(end)), of_type)
    return typer.Option(flag, *_SHORT.get(name, ()), metavar=metavar, help=help_of(cls, name))


def flag_name(option: str) -> str:
    """Return the flag of an option."""
    return f"--{option.replace('_', '-')}"


def help_of(cls: type[Any], name: str) -> str:
    """Return the help of an option from the docstring of its class, with flags instead of option names."""
    documented = _documented(inspect.getdoc(cls) or "")
    text = documented.get(name, "").removeprefix("Whether to ")

    def shown(match: re.Match[str]) -> str:
        return flag_name(match[1]) if match[1] in documented else f"`{match[1]}`"

    return re.sub(r"``(.*?)``", shown, text[:1].upper() + text[1:])


@cache
def _documented(docstring: str) -> dict[str, str]:
    return {match[1]: " ".join(match[2].split()) for match in _ATTRIBUTE.finditer(docstring)}


def _flag_type(cls: type[Any], field: Field[Any]) -> Any:
    """Return the type of a flag. Tuples of any length become repeatable flags."""
    hint = get_type_hints(cls)[field.name]
    return list[get_args(hint)[0]] if get_origin(hint) is tuple else hint  # type: ignore[misc]


def _default(field: Field[Any]) -> Any:
    return [] if field.default == () else field.default
