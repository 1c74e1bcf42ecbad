"""Names and file texts of a new project."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self, final

from deltaloop.api.dns_names import label_problems, subdomain_problems
from deltaloop.api.errors import InvalidArgumentError

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_SLOT: Final = re.compile(r"@(\w+)@")
_ENDINGS: Final = ("-operator", "-controller")
_TAKEN: Final = frozenset({"deltaloop", "msgspec", "pytest", "yaml", "aiohttp", "typer", "tests"})
FILES: Final[Mapping[str, str]] = {
    "@module@.py": "operator.py.txt",
    "test_@module@.py": "test_operator.py.txt",
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    "sample.yaml": "sample.yaml.txt",
    "Containerfile": "Containerfile.txt",
    ".github/workflows/ci.yaml": "ci.yaml.txt",
    ".gitignore": "gitignore.txt",
}
"""Files of a project, with their template names."""
WHEELS: Final = "wheels"
"""Folder for a wheel of deltaloop that is not in a package index."""


@final
@dataclass(frozen=True, slots=True)
class ProjectNames:
    """Names of a project's parts.

    Attributes:
        name: Name of the project, its controller and its deployed objects.
    """

    name: str
    module: str
    kind: str
    group: str

    @classmethod
    def of(cls, name: str, *, kind: str = "", group: str = "example.com") -> Self:
        """Derive the names from the project's name (``paint-operator``).

        An empty kind means that in the name (``Paint``).
        """
        if label_problems(name):
            raise InvalidArgumentError(
                f"must be lower-case letters, digits and inner '-', and begin with a letter, got {name!r}.",
                argument="NAME",
            )
        module = name.replace("-", "_")
        if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in _TAKEN:
            raise InvalidArgumentError(f"must not be the name of an existing module, got {name!r}.", argument="NAME")
        short = name
        for ending in _ENDINGS:
            short = short.removesuffix(ending)
        kind = kind or "".join(part.capitalize() for part in short.split("-"))
        if not _KIND.fullmatch(kind) or keyword.iskeyword(kind):
            raise InvalidArgumentError(
                f"must be letters and digits, and begin with a capital, got {kind!r}.", argument="--kind"
            )
        if "." not in group or subdomain_problems(group):
            raise InvalidArgumentError(
                f"must be a domain with a dot, like example.com, got {group!r}.", argument="--group"
            )
        return cls(name, module, kind, group)


def project_files(
    names: ProjectNames, templates: Mapping[str, str], *, version: str, with_wheel: bool
) -> dict[str, str]:
    """Return the texts of a project's files by path; it requires a compatible version of deltaloop."""
    major, minor = version.split(".")[:2]
    bound = f"{major}.{int(minor) + 1}" if major == "0" else str(int(major) + 1)
    slots = {
        "name": names.name,
        "module": names.module,
        "Kind": names.kind,
        "group": names.group,
        "label": f"{names.group}/{names.kind.lower()}",
        "versions": f">={version},<{bound}",
        "findlinks": f" --find-links {WHEELS}" if with_wheel else "",
        "copywheels": f"COPY {WHEELS} {WHEELS}\n" if with_wheel else "",
    }

    def filled(text: str) -> str:
        return _SLOT.sub(lambda found: slots[found[1]], text)

    return {filled(path): filled(templates[source]) for path, source in FILES.items()}
