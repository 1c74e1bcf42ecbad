"""Differences between existing files and a new package, including changes that break stored objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any, Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, text
from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.cli.packaging.core.chart import definitions_text
from deltaloop.crds import breaking_changes

_DEFINITION: Final = "CustomResourceDefinition"


def changes(
    there: Mapping[str, str | None], wanted: Mapping[str, str], definitions: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return the differences as lines; None in ``there`` means that the file does not exist."""
    lines: list[str] = []
    for path, made in wanted.items():
        found = there.get(path)
        if found is None:
            lines.append(f"{path} does not exist")
        elif found != made:
            lines.append(f"{path} differs (- in the file, + from the program):")
            lines += [f"  {line}" for line in _different(found, made)]
            lines += _broken(path, found, definitions)
    return lines


def _different(found: str, made: str) -> Iterator[str]:
    for line in unified_diff(found.splitlines(), made.splitlines(), n=1, lineterm=""):
        if not line.startswith(("---", "+++")):
            yield line


def _broken(path: str, found: str, definitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the changes that break stored objects, if the existing CRDs are readable."""
    if _DEFINITION not in found:
        return []
    try:
        documents = [*read_yaml_documents(definitions_text(found), source=path)]
    except InvalidArgumentError:
        return []  # the differing lines are shown anyway
    before = {text(at(each, "metadata", "name")): each for each in documents if at(each, "kind") == _DEFINITION}
    lines: list[str] = []
    for made in definitions:
        name = text(at(made, "metadata", "name"))
        broken = breaking_changes(before[name], dict(made)) if name in before else ()
        lines += [f"  {name}: the change breaks stored objects: {change}" for change in broken]
    return lines
