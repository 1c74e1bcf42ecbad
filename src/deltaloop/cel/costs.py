"""What evaluating an expression costs, in cel-go's units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias, final

UNLIMITED: Final = 2**64 - 1


@final
class Estimate(NamedTuple):
    """From what to what a cost or a size may be; ``UNLIMITED`` if nothing is known of the most.

    Attributes:
        least: At least so much.
        most: At most so much.
    """

    least: int
    most: int


# From a path, such as ``("self", "spec", "names", "@items")``, to how large the value there may be; None if unknown.
# The parts after the variable are fields, ``@items``, ``@indices``, ``@keys`` and ``@values``.
SizeHints: TypeAlias = Callable[[tuple[str, ...]], Estimate | None]
