"""Result of a list request."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, final, overload

import msgspec

from deltaloop.api.errors import MalformedObjectError

T_co = TypeVar("T_co", covariant=True)


class _SequenceMeta(msgspec.StructMeta, ABCMeta):
    pass


class ResourceList(msgspec.Struct, Sequence[T_co], frozen=True, metaclass=_SequenceMeta):
    """Sequence of the objects in a list response.

    Attributes:
        items: Objects, in the server's order.
        resource_version: Resource version of the list, from which you can start a watch.
        continue_: Token of the next page, or "" on the last page.
        remaining_item_count: Number of remaining objects, or None if the server does not report it.
        shard_selector: Shard selector that the server applied, or "". Servers do not report it for custom resources.
        unreadable: Errors of invalid items. Empty, except in ``UnreadableItemsError.page``.
    """

    items: tuple[T_co, ...]
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None
    unreadable: tuple[UnreadableItemError, ...] = ()
    shard_selector: str = ""

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
    """Error for a list item from the server that is not a valid object.

    Attributes:
        key: ``namespace/name`` or ``name`` of the item, or None if it is unknown.
    """

    def __init__(self, message: str, *, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


@final
class UnreadableItemsError(MalformedObjectError):
    """Error for a list from the server that contains invalid items.

    Attributes:
        page: List of the valid items. Its ``unreadable`` contains an error for each invalid item.
    """

    def __init__(self, page: ResourceList[Any]) -> None:
        """Create the error with the message of the first invalid item and the number of further items."""
        others = len(page.unreadable) - 1
        super().__init__(f"{page.unreadable[0]}" + (f" (and {others} more items)" if others else ""))
        self.page = page
