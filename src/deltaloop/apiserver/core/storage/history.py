"""The past of a store: its changes, and what is told of them so that they outlive the process.

A ``Journal`` is told of every change and of every change that leaves the window, and what it has
kept is enough to make the same store again, window and all (``restore``):

    kept = the change of every present object + every change in the window

so a watch or a continue token from before a restart goes on after it, as it does over a restart of etcd.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from deltaloop.api.resource import Resource


@dataclass(frozen=True, slots=True)
class StoredChange:
    """One write: what was there before and after it; ``new`` is None for a deletion."""

    revision: int
    resource: str
    key: str
    old: Resource | None
    new: Resource | None

    @property
    def size(self) -> int:
        """Bytes of the objects that it keeps alive."""
        return sum(len(obj.raw) for obj in (self.old, self.new) if obj is not None)


@dataclass(frozen=True, slots=True)
class Record:
    """A change as a journal keeps it; ``value`` is the object's JSON in the store's form, or None for a deletion."""

    revision: int
    resource: str
    key: str
    value: bytes | None


class Journal(Protocol):
    """What makes a store's history durable. Called in order, inside a write: it must neither wait nor fail."""

    def wrote(self, change: StoredChange) -> None:
        """Keep a change; its revision is the store's from now on."""

    def dropped(self, change: StoredChange) -> None:
        """Forget what only this change needed: the object before it, and itself if it is a deletion."""

    def renumbered(self, records: Iterable[Record], *, revision: int) -> None:
        """Forget everything and keep these instead."""
