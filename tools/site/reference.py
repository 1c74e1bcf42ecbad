"""Generate the reference pages of the site: the API, the command line, errors and metrics.

A page of the API has the docstring of its package and one heading for each public name (``tools/public_names.py``).
mkdocstrings renders the docstring of each name.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import typer.main
from prometheus_client import CollectorRegistry
from tools.public_names import definition, homes, is_internal, packages
from tools.site import context

import deltaloop
import deltaloop.metrics
from deltaloop import errors
from deltaloop.cli.app import app, heading_of
from deltaloop.metrics.collector import RegisteredCollector


def rooms() -> list[str]:
    """List what has a page, by name: packages and faces with public names."""
    every = [each for each in packages() if each.count(".") == 1 and not is_internal(each)]
    return sorted(room for each in every if public_names(room := each.rpartition(".")[2]))


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
    """Return the generated pages by path."""
    made = {f"reference/api/{room}.md": room_page(room) for room in rooms()}
    made["reference/api/index.md"] = facade_page()
    made["reference/api/context.md"] = context.page()
    made["reference/command-line.md"] = command_line_page()
    made["reference/errors.md"] = errors_page()
    made["reference/metrics.md"] = metrics_page()
    return made


def room_page(room: str) -> str:
    """Return the page of one package."""
    names = public_names(room)
    charter = ("members: false", "show_root_heading: false", "show_root_toc_entry: false")
    top = [f"# deltaloop.{room}", "", f"::: deltaloop.{room}", "    options:", *(f"      {each}" for each in charter)]
    return "\n".join([*top, "", *(f"::: {path}\n" for path in names.values())])


def errors_page() -> str:
    """Return the table of all exceptions, with subclasses below their base class."""
    lines = [
        "# Errors",
        "",
        "All exceptions of deltaloop are classes of `deltaloop.errors`, and many are names of `dl`. They derive from",
        "`DeltaloopError`. Indentation shows subclasses.",
        "",
        "| error | meaning |",
        "| --- | --- |",
    ]
    classes = {getattr(errors, name) for name in homes("deltaloop.errors")}
    lines += _error_rows(errors.DeltaloopError, classes, 0)
    return "\n".join([*lines, ""])


def _error_rows(error: type[Exception], classes: set[type[Exception]], depth: int) -> Iterator[str]:
    name = error.__name__
    path = f"{definition('deltaloop.errors', name)}.{name}"
    yield f"| {'&nbsp;' * 4 * depth}[`{name}`][{path}] | {first_line(error).replace('|', chr(92) + '|')} |"
    for each in sorted(classes, key=lambda each: each.__name__):
        if error in each.__bases__:
            yield from _error_rows(each, classes, depth + 1)


def metrics_page() -> str:
    """Return the tables of all Prometheus metrics."""
    lines = [
        "# Metrics",
        "",
        "`deltaloop run` and `dl.run` serve these metrics at `/metrics`. They need the extra `metrics`. The names of",
        "client-go and controller-runtime are unchanged, so existing dashboards work.",
        "[Monitor your operator](../how-to/observability.md) explains how to enable and secure the endpoint.",
    ]
    registry = CollectorRegistry()
    for collector in _subclasses(RegisteredCollector):
        room = collector.__module__.rpartition(".")[2]
        lines += [
            "",
            f"## {_TITLES.get(room, room)}",
            "",
            "| metric | type | labels | meaning |",
            "| --- | --- | --- | --- |",
        ]
        made = collector(registry=registry)
        for family in made.describe():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = ", ".join(f"`{label}`" for label in getattr(family, "_labelnames", ()))
            lines.append(f"| `{name}` | {family.type} | {labels} | {family.documentation.rstrip('.')} |")
    return "\n".join([*lines, ""])


_TITLES = {
    "cache": "Caches",
    "client": "Client",
    "leaderelection": "Leader election",
    "runtime": "Controllers",
    "webhooks": "Webhooks",
    "workqueue": "Work queues",
}


def _subclasses(base: type[Any]) -> list[type[Any]]:
    for module in pkgutil.iter_modules(deltaloop.metrics.__path__):
        importlib.import_module(f"deltaloop.metrics.{module.name}")
    return sorted(base.__subclasses__(), key=lambda each: str(each.__module__))


def first_line(value: object) -> str:
    """Return the first line of a docstring; nothing for what has none of its own, such as a number."""
    if not (inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, ModuleType)):
        return ""
    return (inspect.getdoc(value) or "").partition("\n")[0]


def facade_page() -> str:
    """Return the page of the façade: every name, where it is described, and what it does."""
    lines = [
        "# API",
        "",
        "Programs start with `import deltaloop as dl`. This table lists the names of `dl`. The packages below export",
        "more names, for programs that use single parts.",
        "",
        "| name | description |",
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
    lines += ["", "## Packages", "", "| package | description |", "| --- | --- |"]
    for room in rooms():
        lines.append(
            f"| [`deltaloop.{room}`]({room}.md) | {first_line(importlib.import_module(f'deltaloop.{room}'))} |"
        )
    return "\n".join([*lines, ""])


def command_line_page() -> str:
    """Return the page of the ``deltaloop`` command."""
    lines = ["# Command line", "", "The `deltaloop` command needs the extra `cli`.", ""]
    for name, command in commands("", typer.main.get_command(app)):
        lines += [f"## deltaloop {name}".rstrip(), "", inspect.cleandoc(command.help or ""), ""]
        sections: dict[str, list[str]] = {}
        for parameter in command.params:
            heading = heading_of(parameter)
            above = "" if heading in ("Arguments", "Options") else f"### {heading}\n\n"
            sections.setdefault(above, []).append(parameter_row(parameter))
        for above, rows in sections.items():
            lines += [f"{above}| argument or option | description |", "| --- | --- |", *rows, ""]
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
