"""Items that failed for good: parked with their last error until they are added, revived or discarded.

Each item has one letter at most, the latest. There are at most ``bound`` of them; when there are more, the oldest goes,
and is counted. An error keeps the frames it went through alive, so the bound is one on memory, too.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar, final

import msgspec

from deltaloop.workqueue.core.triggers import TriggerLog

K = TypeVar("K", bound=Hashable)

DEFAULT_MAX_DEAD_LETTERS: Final = 1000


@final
class ParkedItem(msgspec.Struct, Generic[K], eq=False):
    """One item that failed for good.

    Attributes:
        item: The item whose run failed for good.
        error: The error of its last run.
        attempts: How many runs failed in a row.
        triggers: The triggers of its last run.
        parked_at: When the last run failed.
    """

    item: K
    error: BaseException | None
    attempts: int
    triggers: TriggerLog
    parked_at: float


@final
class DeadLetters(Generic[K]):
    """The letters, the oldest first."""

    __slots__ = ("_bound", "dropped", "letters", "total")

    def __init__(self, bound: int = DEFAULT_MAX_DEAD_LETTERS) -> None:
        """Keep at most ``bound`` letters; 0 keeps none and only counts them."""
        self._bound = bound
        self.letters: Final[dict[K, ParkedItem[K]]] = {}
        self.total: int = 0
        self.dropped: int = 0

    def put(self, letter: ParkedItem[K]) -> None:
        """Keep a letter, instead of the one that its item may have."""
        self.letters.pop(letter.item, None)
        self.letters[letter.item] = letter
        self.total += 1
        if len(self.letters) > self._bound:
            del self.letters[next(iter(self.letters))]
            self.dropped += 1

    def get(self, item: K) -> ParkedItem[K] | None:
        """Return the letter of an item, if it has one."""
        return self.letters.get(item)

    def remove(self, item: K) -> ParkedItem[K] | None:
        """Take the letter of an item out."""
        return self.letters.pop(item, None)

    def in_order(self) -> list[ParkedItem[K]]:
        """Return all letters, the oldest first."""
        return list(self.letters.values())

    def __contains__(self, item: K) -> bool:
        return item in self.letters

    def __len__(self) -> int:
        return len(self.letters)
