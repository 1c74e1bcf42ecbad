"""Which metrics of several registries cannot stand on one page.

A family takes more names than its own: a counter ``jobs`` takes ``jobs_total``, too. What prometheus-client refuses in
one registry is refused here across several.
"""

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
"""By the type of a family."""

_NOT_IN_NAMES: Final = re.compile("[^a-zA-Z0-9_:]")


@final
class Collision(NamedTuple):
    """A name that two have.

    Attributes:
        name: The name, as it would be on the page.
        owner: Who took it first.
    """

    name: str
    owner: str


def names_of_family(name: str, kind: str) -> tuple[str, ...]:
    """Return all names that a family takes, by its type such as ``counter``."""
    return (name, *(name + suffix for suffix in _SUFFIXES.get(kind, ())))


def take_names(taken: dict[str, str], owner: str, names: Iterable[str]) -> Collision | None:
    """Add names and their owner to those taken; add none and say which collides if one is taken already.

    The page has an underscore where a name has another character than those of Prometheus' first format.
    """
    written = [_NOT_IN_NAMES.sub("_", name) for name in names]
    for name in written:
        if name in taken:
            return Collision(name, taken[name])
    taken.update(dict.fromkeys(written, owner))
    return None
