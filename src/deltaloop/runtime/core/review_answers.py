"""Cache of at most ``LIMIT`` token reviews for a few seconds, by token digest."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, final

KEPT_FOR: Final = 10.0
LIMIT: Final = 1000


@final
class ReviewAnswers:
    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[bytes, str], tuple[bool, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, name: tuple[bytes, str], now: float) -> bool | None:
        """Return the cached result; None if it is missing or expired."""
        found = self._answers.get(name)
        if found is None:
            return None
        if now >= found[1]:
            del self._answers[name]
            return None
        return found[0]

    def keep(self, name: tuple[bytes, str], allowed: bool, now: float) -> None:
        self._answers.pop(name, None)
        self._answers[name] = (allowed, now + KEPT_FOR)
        while len(self._answers) > LIMIT:
            self._answers.popitem(last=False)
