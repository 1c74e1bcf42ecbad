"""What differs between the two runs, and which of it is meant to: no processes, no files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from deltaloop.api.json_values import items, mapping, texts

ABSENT: Final = "<absent>"


@dataclass(frozen=True)
class Difference:
    """One value that is not the same on both.

    Attributes:
        path: Step, what was recorded there, and the fields down to the value, with ``/`` between.
        embedded: The embedded server's; ``<absent>`` if it has none.
        real: The real server's.
    """

    path: str
    embedded: Any
    real: Any

    def __str__(self) -> str:
        return f"{self.path}\n    embedded: {self.embedded!r:.300}\n    real:     {self.real!r:.300}"


@dataclass(frozen=True)
class KnownDifference:
    """A difference that is meant to be.

    Attributes:
        path: Of the differences, ``*`` stands for anything.
        reason: Reason for the difference.
    """

    path: str
    reason: str


def differences(embedded: Any, real: Any, path: str = "") -> list[Difference]:
    """Compare two values to their leaves, maps by key and lists by place, where they are as long as each other."""
    found: list[Difference] = []
    if _are(dict, embedded, real):
        mine, other = mapping(embedded), mapping(real)
        for key in sorted({*mine, *other}):
            below = f"{path}/{key}".lstrip("/")
            found += differences(mine.get(key, ABSENT), other.get(key, ABSENT), below)
        return found
    if _are(list, embedded, real):
        left, right = items(embedded), items(real)
        if all(isinstance(item, str) for item in (*left, *right)):
            return _differing_lines(texts(left), texts(right), path)
        if len(left) == len(right):
            for number, (one, another) in enumerate(zip(left, right, strict=True)):
                found += differences(one, another, f"{path}/{number}")
            return found
    same = type(embedded) is type(real) and embedded == real
    return [] if same else [Difference(path, embedded, real)]


def _are(kind: type, *values: object) -> bool:
    return all(isinstance(value, kind) for value in values)


def _differing_lines(embedded: Sequence[str], real: Sequence[str], path: str) -> list[Difference]:
    mine, other = list(embedded), list(real)
    for line in embedded:
        if line in other:
            mine.remove(line)
            other.remove(line)
    if mine or other:
        return [Difference(path, mine, other)]
    return [] if list(embedded) == list(real) else [Difference(path, list(embedded), list(real))]


def split(
    found: Iterable[Difference], exceptions: Sequence[KnownDifference]
) -> tuple[list[Difference], dict[KnownDifference, list[Difference]]]:
    """Return the differences that nothing explains, and the others by their exception (which may have none)."""
    explained: dict[KnownDifference, list[Difference]] = {each: [] for each in exceptions}
    unexplained: list[Difference] = []
    for difference in found:
        matching = next((each for each in exceptions if fnmatchcase(difference.path, each.path)), None)
        if matching is None:
            unexplained.append(difference)
        else:
            explained[matching].append(difference)
    return unexplained, explained
