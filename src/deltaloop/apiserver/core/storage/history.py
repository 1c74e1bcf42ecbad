"""Changes of a store, and the journal that makes them durable.

The journal keeps the last change of each existing object and all changes in the window, so that watches and continue
tokens are valid across a restart, like those of etcd.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from deltaloop.api.resource import Resource


class StoredChange(msgspec.Struct, frozen=True):
    """One write, with the object before and after it. ``new`` is None for a deletion."""

    revision: int
    resource: str
    key: str
    old: Resource | None
    new: Resource | None

    @property
    def size(self) -> int:
        return (0 if self.old is None else len(self.old.raw)) + (0 if self.new is None else len(self.new.raw))


@dataclass(frozen=True, slots=True)
class Record:
    """Change in a journal. ``value`` is the object's JSON in the store, or None for a deletion."""

    revision: int
    resource: str
    key: str
    value: bytes | None


class Journal(Protocol):
    """Durable history of a store. The store calls it in order inside of writes, so it must neither block nor fail."""

    def wrote(self, change: StoredChange) -> None:
        """Keep a change, whose revision is now the store's revision."""

    def dropped(self, change: StoredChange) -> None:
        """Drop the data that only this change needed: its old object, and the change itself if it is a deletion."""

    def renumbered(self, records: Iterable[Record], *, revision: int) -> None:
        """Replace the complete history by these records."""
