"""Generate the reference page of ``ctx``: its members with signatures and the first lines of their docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from tools.public_api.describe import is_async, keyword_group, shown_constant

from deltaloop.api.references import Trigger
from deltaloop.client.verbs.verbs import Verbs
from deltaloop.events import ComponentRecorder
from deltaloop.runtime import AppliedChildren, Children, Context, ReconcileClient
from deltaloop.runtime.objects.children import DeclaredChildren
from deltaloop.runtime.program.lifespans import Lifespan
from deltaloop.runtime.reconcile.context import ReconcileLogger

_STARS: Final[dict[object, str]] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}

PARTS: Final[dict[str, tuple[type, str]]] = {
    "ctx": (Context, "The context of one reconcile."),
    "ctx.client": (
        ReconcileClient,
        "Client that reads from caches, writes to the server, and sees its own writes immediately.",
    ),
    "ctx.children": (Children, "The children of the object, of the kinds in `children=`."),
    "applied": (AppliedChildren, "The result of `await ctx.children.apply(...)`. References identify the children."),
    "ctx.recorder": (ComponentRecorder, "Records Events as the controller."),
    "trigger": (Trigger, "An item of `ctx.triggers`: a cause of the reconcile."),
}
"""What is on the page: how a reconcile writes it, its class, and one line."""

_ELSEWHERE: Final = (ReconcileLogger,)
"""Classes of attributes of ``ctx`` whose methods are another library's."""


def members(cls: type) -> Iterator[tuple[str, str]]:
    """Yield each public member of a class: what is written to use it, and the first line of its docstring."""
    said = _attributes_said(cls)
    seen: set[str] = set()
    for each in cls.__mro__:
        for name, value in vars(each).items():
            if name.startswith("_") or name in seen or each.__module__.partition(".")[0] != "deltaloop":
                continue
            if isinstance(value, property):
                seen.add(name)
                yield name, _first_line(value)
            elif inspect.isfunction(value):
                seen.add(name)
                yield _call(name, value), _first_line(value)
    yield from ((name, text) for name, text in said.items() if name not in seen)


def _attributes_said(cls: type) -> dict[str, str]:
    """Return the lines below ``Attributes:`` of a class, each joined to one."""
    _, found, rest = (inspect.getdoc(cls) or "").partition("Attributes:\n")
    said: dict[str, str] = {}
    name = ""
    for line in rest.splitlines() if found else ():
        if match := re.match(r" {4}(\w+): (.*)", line):
            name = match[1]
            said[name] = match[2]
        elif line.startswith(" " * 8) and name:
            said[name] += f" {line.strip()}"
        elif line.strip():
            break
    return said


def _first_line(value: object) -> str:
    first = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return " ".join(first.split())


def _call(name: str, function: Callable[..., object]) -> str:
    """Return a method as it is written in a reconcile: how it is entered, its parameters, and what it gives."""
    given = _returned(function)
    if inspect.isasyncgenfunction(inspect.unwrap(function)):  # contextlib's, which wraps it
        given, entered = _yielded(given), "async with "
    elif given.startswith("AsyncGenerator"):
        given, entered = _yielded(given), "async for each in "
    else:
        entered = "await " if is_async(function) else ""
    answer = f" -> {given}" if given not in ("", "None", "Any") else ""
    return f"{entered}{name}({', '.join(_parameters(function))}){answer}"


def _returned(function: Callable[..., object]) -> str:
    """Return what it gives; of several signatures, of the one whose answer is of the kind's class, ``T``."""
    texts = [
        " ".join(str(inspect.signature(each).return_annotation).split()).replace("builtins.", "")
        for each in typing.get_overloads(inspect.unwrap(function)) or [inspect.unwrap(function)]
    ]
    return next((text for text in texts if re.search(r"\bT\b", text)), texts[0])


def _yielded(text: str) -> str:
    return text[text.index("[") + 1 : text.rindex("]")].removesuffix(", None")


def _parameters(function: Callable[..., object]) -> list[str]:
    """Return the parameters as a caller gives them, keywords that are grouped one by one."""
    shown: list[str] = []
    starred = False
    for parameter in [*inspect.signature(function).parameters.values()][1:]:
        group = keyword_group(parameter, function)
        if not starred and (group is not None or parameter.kind is inspect.Parameter.KEYWORD_ONLY):
            shown.append("*")
        starred = starred or group is not None or parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD
        if group is not None:
            shown += [f"{key}=..." for key in group]
            continue
        prefix = _STARS.get(parameter.kind, "")
        default = "" if parameter.default is inspect.Parameter.empty else f"={shown_constant(parameter.default)}"
        shown.append(f"{prefix}{parameter.name}{default}")
    return shown


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what a function of the context is annotated with, what is imported for type checkers alone included."""
    late: dict[str, Any] = {cls.__name__: cls for cls in (ComponentRecorder, Children, DeclaredChildren, Lifespan)}
    return typing.get_type_hints(function, localns=late)


def missing_parts() -> list[str]:
    """Return attributes of ``ctx`` whose class is ours and has no part of its own on the page."""
    known = {cls for cls, _ in PARTS.values()} | {*_ELSEWHERE}
    found: list[str] = []
    for name in _attributes_said(Context):
        hint: Any = _hints(Context).get(name)
        is_struct = inspect.isclass(hint) and issubclass(hint, msgspec.Struct)
        is_value = dataclasses.is_dataclass(hint) or (is_struct and not issubclass(hint, Verbs))
        if inspect.isclass(hint) and hint.__module__.startswith("deltaloop") and not is_value:
            found += [] if hint in known else [name]
    for name, value in vars(Context).items():
        if isinstance(value, property) and value.fget is not None:
            returns = _hints(value.fget).get("return")
            if inspect.isclass(returns) and returns.__module__.startswith("deltaloop") and returns not in known:
                found.append(name)
    return found


def page() -> str:
    """Return the page."""
    parts = [
        "# The context of a reconcile",
        "",
        "This page lists the members of `ctx`, the second argument of a reconcile function, and of the objects that",
        "you get from it. [`dl.Context`][deltaloop.runtime.reconcile.context.Context] describes them in detail.",
        "",
    ]
    for written, (cls, line) in PARTS.items():
        rows = [f"| `{call}` | {text.replace('``', '`').replace('|', chr(92) + '|')} |" for call, text in members(cls)]
        rows = [row.replace(" | None", " or None") for row in rows]
        parts += [f"## `{written}`", "", line, "", "| member | description |", "| --- | --- |", *rows, ""]
    return "\n".join(parts)
