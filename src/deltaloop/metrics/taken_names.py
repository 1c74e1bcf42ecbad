"""Name collisions between metrics of several registries, by prometheus-client's rules (``jobs`` and ``jobs_total``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, final

_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "counter": ("_total", "_created"),
    "summary": ("_sum", "_count", "_created"),
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "gaugehistogram": ("_bucket", "_gsum", "_gcount"),
    "info": ("_info",),
}

_NOT_IN_NAMES: Final = re.compile("[^a-zA-Z0-9_:]")


@final
class Collision(NamedTuple):
    """Name that two metrics use, and its first owner."""

    name: str
    owner: str


def names_of_family(name: str, kind: str) -> tuple[str, ...]:
    """Return all names that a family uses. ``kind`` is its type, for example ``counter``."""
    return (name, *(name + suffix for suffix in _SUFFIXES.get(kind, ())))


def take_names(taken: dict[str, str], owner: str, names: Iterable[str]) -> Collision | None:
    """Add names with their owner, or return the first collision; invalid characters become underscores."""
    written = [_NOT_IN_NAMES.sub("_", name) for name in names]
    for name in written:
        if name in taken:
            return Collision(name, taken[name])
    taken.update(dict.fromkeys(written, owner))
    return None
