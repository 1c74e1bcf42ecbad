"""What the API server said of tokens, for a few seconds; tokens are kept as digests only.

Bounded: of more than ``LIMIT`` answers the oldest go, so that made-up tokens cost no memory.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, final

KEPT_FOR: Final = 10.0
LIMIT: Final = 1000


@final
class ReviewAnswers:
    """Answers by digest of the token, and path."""

    def __init__(self) -> None:
        """Begin without answers."""
        self._answers: OrderedDict[tuple[bytes, str], tuple[bool, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, name: tuple[bytes, str], now: float) -> bool | None:
        """Return what was said; None if nothing was, or too long ago."""
        found = self._answers.get(name)
        if found is None:
            return None
        if now >= found[1]:
            del self._answers[name]
            return None
        return found[0]

    def keep(self, name: tuple[bytes, str], allowed: bool, now: float) -> None:
        """Keep an answer."""
        self._answers.pop(name, None)
        self._answers[name] = (allowed, now + KEPT_FOR)
        while len(self._answers) > LIMIT:
            self._answers.popitem(last=False)
