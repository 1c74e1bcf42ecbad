"""What a list request answers: the objects of one page, and the list's own metadata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final, overload

from deltaloop.api.errors import MalformedObjectError

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ResourceList(Sequence[T_co]):
    """A list of objects, in the server's order: a sequence of its ``items``.

    Attributes:
        items: The objects, in the server's order.
        resource_version: The version of the whole list; watch from here.
        continue_: Token of the next page, or "" if this is the last.
        remaining_item_count: How many more there are, where the server says.
        unreadable: Why items that were in the answer are not among ``items``; empty unless somebody chose to go on
            without them (``UnreadableItemsError.page``).
    """

    items: tuple[T_co, ...]
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None
    unreadable: tuple[UnreadableItemError, ...] = ()

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        return self.items[index]


@final
class UnreadableItemError(MalformedObjectError):
    """One item of a list is not an object that can be read; the server's fault.

    Attributes:
        key: ``namespace/name`` or ``name`` of the item; None if not even that can be read.
    """

    def __init__(self, message: str, *, key: str | None = None) -> None:
        """Keep the key."""
        super().__init__(message)
        self.key = key


@final
class UnreadableItemsError(MalformedObjectError):
    """Some items of a list are not objects; the server's fault.

    Those that are can be had from ``page``.

    Attributes:
        page: The list without these items; its ``unreadable`` has one error for each.
    """

    def __init__(self, page: ResourceList[Any]) -> None:
        """Keep what could be read; the message is that of the first item, and how many more there are."""
        others = len(page.unreadable) - 1
        super().__init__(f"{page.unreadable[0]}" + (f" (and {others} more such items)" if others else ""))
        self.page = page
