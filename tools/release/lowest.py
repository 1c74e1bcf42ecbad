"""Print the lowest versions that ``pyproject.toml`` allows, as pip constraints for ``make -C lab test-lowest``.

It takes what the package asks for, always and in its extras, and what its tests ask for; what those need in turn comes
in the newest version that fits, as it does to users.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

PYPROJECT: Final = Path(__file__).resolve().parents[2] / "pyproject.toml"
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?:\[[^]]*\])?>=(?P<version>[0-9.]+)")


def lowest(project: Mapping[str, Any]) -> dict[str, str]:
    """Return the lowest version of each requirement by its name.

    Raises:
        ValueError: A requirement has another form than ``name>=version``, or two of one package differ.
    """
    extras: Mapping[str, Sequence[str]] = project["project"]["optional-dependencies"]
    tests: Sequence[str] = project["dependency-groups"]["test"]
    found: dict[str, str] = {}
    for requirement in [
        *project["project"]["dependencies"],
        *(each for extra in extras.values() for each in extra),
        *tests,
    ]:
        read = _REQUIREMENT.fullmatch(requirement)
        if read is None:
            raise ValueError(f"{requirement} does not say which version is the lowest: write name>=version")
        if found.setdefault(read["name"], read["version"]) != read["version"]:
            raise ValueError(f"{read['name']} has two lowest versions")
    return found


def main() -> None:
    """Print one line for each."""
    for name, version in sorted(lowest(tomllib.loads(PYPROJECT.read_text())).items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
