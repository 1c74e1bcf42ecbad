"""``deltaloop generate crd``: CRDs of a module's classes, optionally compared with a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, text
from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.load_controllers import LoadError, import_module, named_object
from deltaloop.crds import breaking_changes, generate_crd
from deltaloop.crds.declaring import is_kind
from deltaloop.crds.differences import differences
from deltaloop.runtime.program.definitions import kinds_in

_DEFINITION: Final = "CustomResourceDefinition"
_VERSIONS: Final = ("spec", "versions")


def crd(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE[:CLASS]",
            help="Module or file with classes that @dl.custom_resource decorates. Defaults to all of its kinds.",
        ),
    ],
    *,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            help="Print the differences between FILE and the classes, and the changes that break stored objects.",
        ),
    ] = None,
) -> None:
    """Print the CustomResourceDefinitions of the classes in a module.

    With --check, the exit code is 1 if the file differs.
    """
    definitions = load_definitions(target)
    if check is None:
        typer.echo(write_yaml(definitions), nl=False)
        return
    if lines := check_definitions(definitions, check, target):
        typer.echo("\n".join(lines), err=True)
        raise typer.Exit(1)


def load_definitions(target: str) -> list[dict[str, Any]]:
    """Import a module and return the CRDs of its kinds, or (``module:name``) of one class, in order."""
    name, _, attribute = target.partition(":")
    module = import_module(target, name)
    kinds = kinds_in(module)
    if attribute:
        wanted = named_object(target, module, attribute)
        if not is_kind(wanted):
            raise LoadError(target, f"{attribute} must be a class with @dl.custom_resource.", subject=attribute)
        kinds = [classes for classes in kinds if wanted in classes]
    if not kinds:
        problem = "contains no kinds. Decorate a class with @dl.custom_resource(group=..., version=...)."
        raise LoadError(target, f"module {module.__name__} {problem}", subject=module.__name__)
    return [generate_crd(*classes) for classes in kinds]


def check_definitions(definitions: Sequence[dict[str, Any]], file: Path, target: str) -> list[str]:
    """Return the lines that describe how the CRDs of a file differ from those of the classes."""
    there_is = _read(file)
    written = {text(at(each, "metadata", "name")): each for each in there_is if at(each, "kind") == _DEFINITION}
    lines: list[str] = []
    renamed = _renamed(written, definitions)
    for made in definitions:
        name = text(at(made, "metadata", "name"))
        there = written.pop(renamed.get(name, name), None)
        if there is None:
            lines.append(f"{file} does not contain the definition {name}")
            continue
        if not (wrong := differences(there, made)):
            continue
        lines.append(f"{file}: {renamed.get(name, name)} differs from the class")
        lines += [f"  {line}" for line in wrong]
        if broken := breaking_changes(there, made):
            lines.append("  The change breaks stored objects:")
            lines += [f"    {change}" for change in broken]
    lines += [f"{file} contains the definition {name}, which has no class" for name in written]
    if lines and all(at(each, "kind") == _DEFINITION for each in there_is):
        lines.append(f"Update the file: deltaloop generate crd {target} > {file}")
    elif lines:
        lines.append(f"Replace the definitions in {file} with the output of: deltaloop generate crd {target}")
    return lines


def _renamed(written: Mapping[str, Any], definitions: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the old CRD names by new CRD name, for kinds whose name, plural or group changed.

    CRDs match if they have the same kind, or the same versions with the same fields, unambiguously.
    """
    made = {text(at(each, "metadata", "name")): each for each in definitions}
    alike = [
        (new, gone)
        for new in made.keys() - written.keys()
        for gone in written.keys() - made.keys()
        if any(at(made[new], *path) == at(written[gone], *path) for path in (("spec", "names", "kind"), _VERSIONS))
    ]
    news, gones = [new for new, _ in alike], [gone for _, gone in alike]
    return {new: gone for new, gone in alike if news.count(new) == gones.count(gone) == 1}


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        return [*read_yaml_documents(file.read_text(encoding="utf-8"))]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{file} cannot be read: {error}") from None
