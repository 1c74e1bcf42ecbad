"""Describes the public API: one line for each public name, and one for each member of a public class.

Public is what the façade and the rooms export (the names that have a place in the API reference). A line tells what a
caller could notice: parameters with their kinds, annotations and defaults, the keys of keyword groups, bases, fields
and members. What is inherited from a class that is not public counts as the heir's own, so that moving code between
such classes changes nothing here.
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

_UNSEEN: Final = frozenset({object, abc.ABC, typing.Generic, typing.Protocol})
# Other names with underscores at both ends are called by nobody's program.
_CALLED: Final = frozenset({
    "__init__", "__call__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__next__", "__aiter__",
    "__anext__", "__await__", "__len__", "__contains__", "__getitem__", "__setitem__", "__delitem__", "__bool__",
    "__lt__", "__le__", "__gt__", "__ge__", "__and__", "__or__", "__invert__",
})  # fmt: skip
_UNPACKED = re.compile(r"Unpack\[(?P<name>[\w.]+)\]")


def public_values() -> dict[str, object]:
    """Return every public value by its whole name; one that two rooms export has both names."""
    found: dict[str, object] = {}
    for package in [each for each in packages() if not is_internal(each)]:
        for name in homes(package):
            found[f"{package}.{name}"] = getattr(importlib.import_module(package), name)
    for name, value in list(found.items()):
        if isinstance(value, ModuleType) and value.__name__ not in packages():
            found |= {f"{name}.{each}": getattr(value, each) for each in _names_of(value)}
    return found


def _names_of(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if not name.startswith("_") and _is_at_home(value, module)]


def _is_at_home(value: object, module: ModuleType) -> bool:
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__module__.rpartition(".")[2] == module.__name__.rpartition(".")[2]
    return type(value).__module__.partition(".")[0] in ("deltaloop", "builtins") and not isinstance(value, ModuleType)


def api() -> dict[str, str]:
    """Return what is public: descriptions by whole names, such as ``deltaloop.client.Client.get``."""
    values = public_values()
    described = frozenset(id(value) for value in values.values() if inspect.isclass(value))
    rooms = {id(value): name for name, value in values.items() if name.count(".") > 1}
    found: dict[str, str] = {}
    for name, value in values.items():
        home = rooms.get(id(value), name)
        if name.count(".") == 1 and home != name and (inspect.isclass(value) or inspect.isroutine(value)):
            found[name] = f"is {home}"
        elif inspect.isclass(value):
            found[name] = f"class{_bases(value, described)}"
            found |= {f"{name}.{member}": text for member, text in _members(value, described)}
        else:
            found[name] = _value(value)
    return dict(sorted(found.items()))


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "deltaloop"


def _bases(cls: type, public: frozenset[int]) -> str:
    found: list[str] = []
    for each in cls.__mro__:
        if each is not cls and id(each) in public:
            found.append(each.__name__)
        elif each is cls or _is_ours(each):
            found += [base.__name__ for base in each.__bases__ if not _is_ours(base) and base not in _UNSEEN]
    if typing.is_typeddict(cls):
        found = ["TypedDict"]
    return f"({', '.join(dict.fromkeys(found))})" if found else ""


def _members(cls: type, public: frozenset[int]) -> Iterator[tuple[str, str]]:
    if issubclass(cls, enum.Enum):
        yield from ((name, repr(each.value)) for name, each in cls.__members__.items())
    seen: set[str] = set()
    for each in cls.__mro__:
        if not _is_ours(each) or (each is not cls and id(each) in public):
            continue
        annotations: Mapping[str, object] = vars(each).get("__annotations__", {})
        for name, annotation in annotations.items():
            if inspect.isfunction(vars(each).get(name)):
                continue  # a method that another function made
            if _is_seen(name) and name not in seen and not issubclass(cls, enum.Enum):
                seen.add(name)
                yield name, f": {_annotation(annotation)}{_field_default(each, name)}"
        for name, value in vars(each).items():
            if not _is_seen(name) or name in seen or (issubclass(cls, enum.Enum) and name in cls.__members__):
                continue
            seen.add(name)
            if (text := _member(value)) is not None:
                yield name, text


def _is_seen(name: str) -> bool:
    return not name.startswith("_") or name in _CALLED


def _member(value: object) -> str | None:
    if isinstance(value, staticmethod | classmethod):
        wrapper = cast("staticmethod[..., object] | classmethod[object, ..., object]", value)
        return f"{type(wrapper).__name__} {_function(wrapper.__func__)}"
    if isinstance(value, property):
        returns = inspect.signature(value.fget).return_annotation if value.fget is not None else None
        return f"property -> {_annotation(returns)}{'' if value.fset is None else ', can be set'}"
    if inspect.isfunction(value):
        return None if value.__module__ == "typing" else _function(value)  # what protocols get instead of __init__
    if inspect.isclass(value):
        return "class"
    return None  # slots and constants of the class without an annotation


def _function(function: Callable[..., object]) -> str:
    prefix = "async " if is_async(function) else ""
    overloads = typing.get_overloads(function)
    return " | ".join(f"{prefix}{_signature(each)}" for each in overloads or [function])


def is_async(function: Callable[..., object]) -> bool:
    """Tell whether the result has to be awaited; of the calls that a reconcile makes Python 3.11 cannot tell."""
    looked_after = getattr(function, "__globals__", {}).get("__name__") == "deltaloop.runtime.reconcile.calls"
    return inspect.iscoroutinefunction(inspect.unwrap(function) if looked_after else function)


def _signature(function: Callable[..., object]) -> str:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
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
    return f"({', '.join(shown)}) -> {_annotation(signature.return_annotation)}"


def _parameter(parameter: inspect.Parameter, function: Callable[..., object]) -> str:
    annotation = _annotation(parameter.annotation)
    if (group := keyword_group(parameter, function)) is not None:
        return "**{" + ", ".join(f"{key}: {_annotation(each)}" for key, each in group.items()) + "}"
    kinds: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    stars = kinds.get(parameter.kind, "")
    said = "" if parameter.annotation is inspect.Parameter.empty else f": {annotation}"
    default = "" if parameter.default is inspect.Parameter.empty else f" = {shown_constant(parameter.default)}"
    return f"{stars}{parameter.name}{said}{default}"


def keyword_group(parameter: inspect.Parameter, function: Callable[..., object]) -> dict[str, object] | None:
    """Return the keys and annotations of a TypedDict that a function takes as keywords; None if it takes none so."""
    packed = _UNPACKED.fullmatch(_annotation(parameter.annotation))
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD or packed is None:
        return None
    value: Any = getattr(inspect.unwrap(function), "__globals__", {}).get(packed["name"].rpartition(".")[2])
    if value is None or not typing.is_typeddict(value):
        return None
    return {key: value.__annotations__[key] for key in sorted(value.__annotations__)}


def _value(value: object) -> str:
    if isinstance(value, ModuleType):
        return "module"
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


def _field_default(cls: type, name: str) -> str:
    own = vars(cls)
    if dataclasses.is_dataclass(cls):
        field = next((each for each in dataclasses.fields(cls) if each.name == name), None)
        if field is None or (field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING):
            return ""
        return f" = {shown_constant(field.default) if field.default is not dataclasses.MISSING else '...'}"
    return " = ..." if name in own and not inspect.ismemberdescriptor(own[name]) else ""


def shown_constant(value: object) -> str:
    """Return a default as a signature shows it; ``...`` for what has no short form."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str) or value in ((), frozenset()):
        return repr(value)
    return "..."
