"""What a list request answers: the objects of one page, and the list's own metadata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ResourceList(Generic[T_co]):
    """A list of objects, in the server's order.

    Attributes:
        items: The objects.
        resource_version: The version of the whole list; watch from here.
        continue_: Token of the next page, or "" if this is the last.
        remaining_item_count: How many more there are, where the server says.
    """

    items: tuple[T_co, ...]
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
