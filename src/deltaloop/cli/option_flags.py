"""Flags from the fields of an options class, with their names, types, defaults and documentation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, cast, get_args, get_origin, get_type_hints

import typer

from deltaloop.runtime.program.options import FilePath

_FILES: Final[dict[Any, Any]] = {FilePath: Path, FilePath | None: Path | None}
_SHORT: Final = {"namespace": ("-n",)}
_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*(?:\n     .*)*)", re.MULTILINE)


def with_flags_of(
    cls: type[Any], headings: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the ``**flags`` of a command with flags for the other fields of a dataclass.

    Args:
        cls: Dataclass of the options.
        headings: Headings in the help by the first field below each.
    """

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = {each.name for each in own}
        made: list[inspect.Parameter] = []
        heading: str | None = None
        for each in fields(cls):
            heading = headings.get(each.name, heading)
            if each.name not in named:
                flag: Any = Annotated[_flag_type(cls, each), option_of(cls, each.name, heading)]
                kind = inspect.Parameter.KEYWORD_ONLY
                made.append(inspect.Parameter(each.name, kind, default=_default(each), annotation=flag))
        parameters = sorted([*made, *own], key=lambda each: each.kind)
        setattr(function, "__signature__", signature.replace(parameters=parameters))  # noqa: B010 - functions declare none
        function.__annotations__ = {each.name: each.annotation for each in parameters}
        return function

    return declare


def values_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Convert flag values to option values. Lists of repeatable flags become tuples."""
    return {name: tuple(cast("list[Any]", each)) if isinstance(each, list) else each for name, each in flags.items()}


def option_of(cls: type[Any], name: str, heading: str | None = None) -> Any:
    """Return the flag of a dataclass field."""
    field = next(each for each in fields(cls) if each.name == name)
    flag = flag_name(name)
    if field.default is True:
        return typer.Option(f"{flag}/--no-{flag[2:]}", help=help_of(cls, name), rich_help_panel=heading)
    return typer.Option(flag, *_SHORT.get(name, ()), help=help_of(cls, name), rich_help_panel=heading)


def flag_name(option: str) -> str:
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
    if get_origin(hint) is tuple:
        return list[_FILES.get(get_args(hint)[0], get_args(hint)[0])]  # type: ignore[misc]
    return _FILES.get(hint, hint)


def _default(field: Field[Any]) -> Any:
    return [] if field.default == () else field.default
