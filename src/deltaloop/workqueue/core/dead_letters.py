"""Items that failed permanently; beyond ``bound``, the oldest is dropped, because errors keep their frames alive."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar, final

import msgspec

from deltaloop.workqueue.core.triggers import TriggerLog

K = TypeVar("K", bound=Hashable)

DEFAULT_MAX_DEAD_LETTERS: Final = 1000


@final
class ParkedItem(msgspec.Struct, Generic[K], eq=False):
    """An item that failed permanently, with the error and triggers of its last run."""

    item: K
    error: BaseException | None
    attempts: int
    triggers: TriggerLog
    parked_at: float


@final
class DeadLetters(Generic[K]):
    __slots__ = ("_bound", "dropped", "letters", "total")

    def __init__(self, bound: int = DEFAULT_MAX_DEAD_LETTERS) -> None:
        """Create an empty collection. With a ``bound`` of 0, letters are only counted."""
        self._bound = bound
        self.letters: Final[dict[K, ParkedItem[K]]] = {}
        self.total: int = 0
        self.dropped: int = 0

    def put(self, letter: ParkedItem[K]) -> None:
        self.letters.pop(letter.item, None)
        self.letters[letter.item] = letter
        self.total += 1
        if len(self.letters) > self._bound:
            del self.letters[next(iter(self.letters))]
            self.dropped += 1

    def get(self, item: K) -> ParkedItem[K] | None:
        return self.letters.get(item)

    def remove(self, item: K) -> ParkedItem[K] | None:
        return self.letters.pop(item, None)

    def in_order(self) -> list[ParkedItem[K]]:
        return list(self.letters.values())

    def __contains__(self, item: K) -> bool:
        return item in self.letters

    def __len__(self) -> int:
        return len(self.letters)
