"""The cache that a user writes by hand where a client has none: a dictionary, and one index."""

from __future__ import annotations

from typing import Generic, TypeVar, final

T = TypeVar("T")


@final
class DictCache(Generic[T]):
    """Objects by key and by application."""

    def __init__(self) -> None:
        """Begin empty."""
        self._objects: dict[str, T] = {}
        self._index: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def put(self, key: str, application: str, obj: T) -> None:
        """Store an object; its application never changes here."""
        self._objects[key] = obj
        self._index.setdefault(application, set()).add(key)

    def get(self, key: str) -> T:
        """Return an object."""
        return self._objects[key]

    def indexed(self, application: str) -> list[T]:
        """Return the objects of an application."""
        return [self._objects[key] for key in self._index.get(application, ())]
