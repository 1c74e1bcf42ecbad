"""The mutants that no test can kill, each with its reason, and those among them that are none any more."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.mutants.systematic.mutant import Mutant, mutants
from lab.mutants.systematic.rooms import SOURCE

LIST = Path(__file__).with_name("equivalent.toml")
Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class Equivalent:
    """One entry: a mutant, and why nobody can tell it from what stands."""

    module: str
    function: str
    change: str
    nth: int
    reason: str

    @property
    def key(self) -> Key:
        return self.module, self.function, self.change, self.nth


def read(path: Path = LIST) -> dict[Key, Equivalent]:
    """The list: a table for each module, in it one for each function, in it changes and their reasons.

    Raises:
        ValueError: a reason is missing.
    """
    found: dict[Key, Equivalent] = {}
    for module, functions in tomllib.loads(path.read_text()).items():
        for function, changes in functions.items():
            for change, reason in changes.items():
                text, _, number = change.partition(" #")
                entry = Equivalent(module, function, text, int(number or 1), reason)
                if len(reason.split()) < 3:
                    raise ValueError(f"{entry.key}: say why nobody can tell it from what stands")
                found[entry.key] = entry
    return found


def stale(entries: Mapping[Key, Equivalent], root: Path = SOURCE) -> list[str]:
    """Entries of which the code has no such mutant any more."""
    there: set[Key] = set()
    for module in {each.module for each in entries.values()}:
        if (root / module).exists():
            there |= {each.key for each in mutants(module, ast.parse((root / module).read_text()))}
    return [f"{key[0]}: {key[1]}: {key[2]}" for key in entries if key not in there]


def reason(mutant: Mutant, entries: Mapping[Key, Equivalent]) -> str | None:
    entry = entries.get(mutant.key)
    return None if entry is None else entry.reason
