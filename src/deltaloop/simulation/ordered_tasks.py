"""Iterate over asyncio's sets of tasks (``TaskGroup``, ``as_completed``, ``wait``) in insertion order."""

from __future__ import annotations

import asyncio.taskgroups
import asyncio.tasks
from collections.abc import Callable, Generator, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, Self, TypeVar, final

T = TypeVar("T")

_NAME: Final = "set"

_MODULES: Final[tuple[ModuleType, ...]] = (asyncio.taskgroups, asyncio.tasks)


@final
class OrderedSet(set[T]):
    """Set with insertion order. Operators such as ``|`` return ordinary sets."""

    def __init__(self, members: Iterable[T] = ()) -> None:
        self._order = dict.fromkeys(members)
        super().__init__(self._order)

    def __iter__(self) -> Iterator[T]:
        return iter(self._order)

    def add(self, member: T) -> None:
        self._order[member] = None
        super().add(member)

    def discard(self, member: object) -> None:
        if member in self:
            del self._order[member]  # type: ignore[arg-type]
        super().discard(member)

    def remove(self, member: T) -> None:
        del self._order[member]
        super().remove(member)

    def pop(self) -> T:
        if not self._order:
            raise KeyError("pop from an empty set")
        member = next(iter(self._order))
        self.remove(member)
        return member

    def clear(self) -> None:
        self._order.clear()
        super().clear()

    def copy(self) -> OrderedSet[T]:
        return OrderedSet(self)

    def update(self, *others: Iterable[T]) -> None:
        for other in others:
            for member in [*other]:
                self.add(member)

    def difference_update(self, *others: Iterable[object]) -> None:
        for other in others:
            for member in [*other]:
                self.discard(member)

    def intersection_update(self, *others: Iterable[object]) -> None:
        self.difference_update(self.difference(self.intersection(*others)))

    def symmetric_difference_update(self, other: Iterable[T]) -> None:
        """Remove common members, and add those that are only in the other set."""
        for member in dict.fromkeys(other):
            if member in self:
                self.remove(member)
            else:
                self.add(member)

    def __ior__(self, other: object) -> Self:  # type: ignore[override]
        return self._in_place(self.update, other)

    def __isub__(self, other: object) -> Self:
        return self._in_place(self.difference_update, other)

    def __iand__(self, other: object) -> Self:
        return self._in_place(self.intersection_update, other)

    def __ixor__(self, other: object) -> Self:  # type: ignore[override]
        return self._in_place(self.symmetric_difference_update, other)

    def _in_place(self, change: Callable[[Any], None], other: object) -> Self:
        if not isinstance(other, AbstractSet):
            return NotImplemented  # type: ignore[no-any-return]
        change(other)
        return self


@contextmanager
def ordered_tasks() -> Generator[None, None, None]:
    """Keep the order of asyncio's tasks in this block, in the whole process."""
    for module in _MODULES:
        setattr(module, _NAME, OrderedSet)
    try:
        yield
    finally:
        for module in _MODULES:
            delattr(module, _NAME)
