"""Describe the public API: one line for each public name of ``dl`` and of the rooms in the API reference.

A line holds everything that a caller depends on: the signature with its annotations and defaults, the bases, and the
public members of a class with the names of their parameters. Members that come from a private base count as the heir's
own, so moving code between such classes changes nothing here.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final, cast

from tools.public_names import homes, is_internal, packages

from deltaloop import kinds
from deltaloop.client.verbs import request_keywords

_UNSEEN: Final = frozenset({object, abc.ABC, typing.Generic, typing.Protocol})
# The other special methods are not part of an interface that programs call.
_CALLED: Final = frozenset({
    "__call__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__next__", "__aiter__", "__anext__",
    "__await__", "__len__", "__contains__", "__getitem__", "__setitem__", "__delitem__", "__bool__", "__lt__",
    "__le__", "__gt__", "__ge__", "__and__", "__or__", "__invert__",
})  # fmt: skip
_UNPACKED = re.compile(r"Unpack\[(?P<name>[\w.]+)\]")
_STARS: Final[dict[object, str]] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def public_values() -> dict[str, object]:
    """Return every public value by its whole name, without modules and the constants of built-in kinds."""
    return {
        f"{package}.{name}": value
        for package in packages()
        if not is_internal(package)
        for name in homes(package)
        if not isinstance(value := getattr(importlib.import_module(package), name), ModuleType)
    }


def api() -> list[str]:
    """Return one line for each public name, sorted; a name that ``dl`` exports, too, is marked with it."""
    values = public_values()
    facade = {id(value): name for name, value in values.items() if name.count(".") == 1}
    rooms = {id(value) for name, value in values.items() if name.count(".") > 1}
    described = frozenset(id(value) for value in values.values() if inspect.isclass(value))
    lines = [
        f"{name}{_alias(name, facade.get(id(value)))} {_described(value, described)}"
        for name, value in values.items()
        if name.count(".") > 1 or id(value) not in rooms
    ]
    return [*sorted(lines), f"deltaloop.kinds {', '.join(sorted(each for each in vars(kinds) if each.isupper()))}"]


def _alias(name: str, exported: str | None) -> str:
    return f" = {exported}" if exported is not None and exported != name else ""


def _described(value: object, public: frozenset[int]) -> str:
    if not inspect.isclass(value):
        return _value(value)
    made = _constructor(value)
    fields = {*re.findall(r"(\w+): ", made)}
    members = ", ".join(sorted(each for each in _members(value, public) if each not in fields))
    return f"class{_bases(value, public)}{made}{f': {members}' if members else ''}"


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "deltaloop"


def _constructor(cls: type[Any]) -> str:
    """Return the signature of ``__init__``, if it is one of ours and takes arguments."""
    if issubclass(cls, enum.Enum) or typing.is_typeddict(cls):
        return ""
    try:
        signature = inspect.signature(cls)
    except (TypeError, ValueError):
        return ""
    owner = next(each for each in cls.__mro__ if "__init__" in vars(each))
    own = _is_ours(owner) and vars(owner)["__init__"].__module__ != "typing"
    shown = _shown(signature, cls.__init__, returns=False) if own or _has_fields(cls) else "()"
    return "" if shown == "()" else f" {shown}"


def _has_fields(cls: type[Any]) -> bool:
    return dataclasses.is_dataclass(cls) or hasattr(cls, "__struct_fields__")


def _bases(cls: type[Any], public: frozenset[int]) -> str:
    if typing.is_typeddict(cls):
        return "(TypedDict)"
    found: list[str] = []
    for each in cls.__mro__:
        if each is not cls and id(each) in public:
            found.append(each.__name__)
        elif each is cls or _is_ours(each):
            found += [base.__name__ for base in each.__bases__ if not _is_ours(base) and base not in _UNSEEN]
    return f"({', '.join(dict.fromkeys(found))})" if found else ""


def _members(cls: type[Any], public: frozenset[int]) -> Iterator[str]:
    if issubclass(cls, enum.Enum):
        yield from (f"{name}={each.value!r}" for name, each in cls.__members__.items())
    seen: set[str] = set(cls.__members__) if issubclass(cls, enum.Enum) else set()
    for each in cls.__mro__:
        if not _is_ours(each) or (each is not cls and id(each) in public):
            continue
        for name, value in vars(each).items():
            if name not in seen and _is_seen(name) and (text := _member(name, value)) is not None:
                seen.add(name)
                yield text
        annotations: Mapping[str, object] = vars(each).get("__annotations__", {})
        for name, annotation in annotations.items():
            if name not in seen and _is_seen(name):
                seen.add(name)
                yield f"{name}: {_annotation(annotation)}" if typing.is_typeddict(cls) else name


def _is_seen(name: str) -> bool:
    return not name.startswith("_") or name in _CALLED


def _member(name: str, value: object) -> str | None:
    if isinstance(value, staticmethod | classmethod):
        return f"{name}{_names(cast('classmethod[object, ..., object]', value).__func__)}"
    if isinstance(value, property):
        return name
    if inspect.isfunction(value):
        prefix = "async " if is_async(value) else ""
        return None if value.__module__ == "typing" else f"{prefix}{name}{_names(value)}"
    return name if inspect.isclass(value) else None


def _names(function: Callable[..., object]) -> str:
    """Return the names of the parameters that a caller gives; ``=`` marks those with a default."""
    shown: list[str] = []
    for parameter in [*_parameters(function)]:
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        packed = _UNPACKED.fullmatch(_annotation(parameter.annotation))
        name = packed["name"].rpartition(".")[2] if packed else parameter.name
        default = "" if parameter.default is inspect.Parameter.empty else "="
        shown.append(f"{_STARS.get(parameter.kind, '')}{name}{default}")
    return f"({', '.join(shown)})"


def _parameters(function: Callable[..., object]) -> Iterator[inspect.Parameter]:
    try:
        yield from inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return


def _function(function: Callable[..., object]) -> str:
    prefix = "async " if is_async(function) else ""
    overloads = typing.get_overloads(function) or [function]
    try:
        return " | ".join(f"{prefix}{_shown(inspect.signature(each), each)}" for each in overloads)
    except (TypeError, ValueError):
        return "(...)"


def is_async(function: Callable[..., object]) -> bool:
    """Return whether the result must be awaited; Python 3.11 cannot tell for the calls that a reconcile makes."""
    looked_after = getattr(function, "__globals__", {}).get("__name__") == "deltaloop.runtime.reconcile.calls"
    return inspect.iscoroutinefunction(inspect.unwrap(function) if looked_after else function)


def _shown(signature: inspect.Signature, function: Callable[..., object], *, returns: bool = True) -> str:
    shown: list[str] = []
    previous: object = None
    for parameter in signature.parameters.values():
        if previous is inspect.Parameter.POSITIONAL_ONLY and parameter.kind is not previous:
            shown.append("/")
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and previous not in (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_POSITIONAL,
        ):
            shown.append("*")
        previous = parameter.kind
        shown.append(_parameter(parameter, function))
    if previous is inspect.Parameter.POSITIONAL_ONLY:
        shown.append("/")
    return f"({', '.join(shown)})" + (f" -> {_annotation(signature.return_annotation)}" if returns else "")


def _parameter(parameter: inspect.Parameter, function: Callable[..., object]) -> str:
    annotation = _annotation(parameter.annotation)
    if (group := keyword_group(parameter, function)) is not None:
        return "**{" + ", ".join(f"{key}: {_annotation(each)}" for key, each in group.items()) + "}"
    stars = _STARS.get(parameter.kind, "")
    said = "" if parameter.annotation is inspect.Parameter.empty else f": {annotation}"
    default = "" if parameter.default is inspect.Parameter.empty else f" = {shown_constant(parameter.default)}"
    return f"{stars}{parameter.name}{said}{default}"


def keyword_group(parameter: inspect.Parameter, function: Callable[..., object]) -> dict[str, object] | None:
    """Return the keys and annotations of a TypedDict that a function takes as keywords; None if it takes none so."""
    packed = _UNPACKED.fullmatch(_annotation(parameter.annotation))
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD or packed is None:
        return None
    name = packed["name"].rpartition(".")[2]
    known: dict[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
    value: Any = known.get(name) or getattr(request_keywords, name, None)  # imported for type checkers only
    if value is None or not typing.is_typeddict(value):
        return None
    return {key: value.__annotations__[key] for key in sorted(value.__annotations__)}


def _value(value: object) -> str:
    if inspect.isroutine(value):
        return _function(value)
    if isinstance(value, Mapping | frozenset | tuple | str | int | float):
        return type(cast("object", value)).__name__
    if typing.get_origin(value) is not None or isinstance(value, typing.TypeVar):
        return f"= {_annotation(value)}"
    return f"a {type(value).__name__}"


def _annotation(annotation: object) -> str:
    """Return an annotation as it stands in the source, in the same form for every version of Python."""
    if annotation is inspect.Signature.empty:
        return "?"
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    if isinstance(annotation, str):
        return " ".join(annotation.split())
    if inspect.isclass(annotation) and not typing.get_args(annotation):
        return annotation.__name__
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", repr(annotation))


def shown_constant(value: object) -> str:
    """Return a default as a signature shows it; ``...`` for a value without a short form."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str) or value in ((), frozenset()):
        return repr(value)
    return "..."
