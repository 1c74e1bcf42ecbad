"""Makes the pages of the API reference: one for each room, and one for the façade.

A page has the room's charter and one heading for each public name (``tools/public_names.py``); what stands below it is
made by mkdocstrings from the docstring. The command line's page is made from its commands. No list here is written by
hand.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import typer.main
from tools.public_names import definition, homes, is_internal, packages

import deltaloop
from deltaloop.cli.app import app


def rooms() -> list[str]:
    """List what has a page, by name: packages and faces with public names."""
    every = [each for each in packages() if each.count(".") == 1 and not is_internal(each)]
    return sorted(each.rpartition(".")[2] for each in every)


def public_names(room: str) -> dict[str, str]:
    """Return a room's public names, in order, each with the path under which its docstring is found.

    Those of the packages in it are among them, but for adapters, which need other people's packages to be imported.
    """
    package = f"deltaloop.{room}"
    inside = [each for each in packages() if each.startswith(f"{package}.") and not each.endswith(".adapters")]
    own = {
        name: f"{definition(each, name)}.{name}"
        for each in (package, *inside)
        if not is_internal(each)
        for name in homes(each)
    }
    if room == "api":  # what it cannot hand out, since modules in it are called so
        own |= {name: f"{home}.{name}" for name, home in homes("deltaloop").items() if f"{package}.{name}" == home}
    return {name: own[name] for name in sorted(own, key=str.lower)}


def pages() -> dict[str, str]:
    """Return all pages by their names."""
    made = {f"reference/{room}.md": room_page(room) for room in rooms()}
    made["reference/index.md"] = facade_page()
    made["reference/command-line.md"] = command_line_page()
    return made


def room_page(room: str) -> str:
    """Return the page of one room."""
    names = public_names(room)
    charter = ("members: false", "show_root_heading: false", "show_root_toc_entry: false")
    top = [f"# deltaloop.{room}", "", f"::: deltaloop.{room}", "    options:", *(f"      {each}" for each in charter)]
    return "\n".join([*top, "", *(f"::: {path}\n" for path in names.values())])


def first_line(value: object) -> str:
    """Return the first line of a docstring; nothing for what has none of its own, such as a number."""
    if not (inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, ModuleType)):
        return ""
    return (inspect.getdoc(value) or "").partition("\n")[0]


def facade_page() -> str:
    """Return the page of the façade: every name, where it is described, and what it does."""
    lines = [
        "# The API",
        "",
        "`import deltaloop as dl` is how a program begins; these are the names that it has then. Each is described on",
        "the page of its room. The rooms have more names, for those who need a part alone.",
        "",
        "| name | what it is |",
        "| --- | --- |",
    ]
    for name in sorted(homes("deltaloop"), key=str.lower):
        value = getattr(deltaloop, name)
        says = first_line(value).replace("|", "\\|")
        path = f"{definition('deltaloop', name)}.{name}"
        if isinstance(value, ModuleType):
            shown = f"[`dl.{name}`]({name}.md)" if name in rooms() else f"`dl.{name}`"
        else:
            shown = f"[`dl.{name}`][{path}]"
        lines.append(f"| {shown} | {says} |")
    lines += ["", "## Rooms", "", "| package | what it owns |", "| --- | --- |"]
    for room in rooms():
        lines.append(
            f"| [`deltaloop.{room}`]({room}.md) | {first_line(importlib.import_module(f'deltaloop.{room}'))} |"
        )
    return "\n".join([*lines, ""])


def command_line_page() -> str:
    """Return the page of the ``deltaloop`` command."""
    lines = ["# The command line", "", "The `deltaloop` command comes with the extra `cli`.", ""]
    for name, command in commands("", typer.main.get_command(app)):
        lines += [f"## deltaloop {name}".rstrip(), "", inspect.cleandoc(command.help or ""), ""]
        rows = [parameter_row(parameter) for parameter in command.params]
        if rows:
            lines += ["| argument or option | what it does |", "| --- | --- |", *rows, ""]
    return "\n".join(lines)


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield a command and those in it, with their whole names."""
    yield name, command
    for inner in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(f"{name} {inner}".strip(), command.get_command(None, inner))


def parameter_row(parameter: Any) -> str:
    """Return one line of a command's table."""
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        names = f"`{parameter.name.upper()}`"
    says = (getattr(parameter, "help", None) or "").replace("|", "\\|").replace("\n", " ")
    default = parameter.default
    if isinstance(default, int | float | str) and not isinstance(default, bool) and default != "":
        says += f" Default: `{default}`."
    return f"| {names} | {says} |"
