"""What the reconciles of one controller remember of its objects, from run to run: one dict for each object.

    no memory ──first use──▶ kept ──object deleted, replaced by another of its name, or the term ends──▶ no memory

A memory belongs to one object, which its uid tells from a successor of the same name. It is kept for objects that are
in the cache, and dropped by the event that takes them out of it; so there are never more memories than objects.
"""

from __future__ import annotations

from typing import Any, final


@final
class Memories:
    """The memories of one controller's objects."""

    def __init__(self) -> None:
        """Begin without memories."""
        self._kept: dict[str, tuple[str, dict[str, Any]]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, key: str, uid: str) -> dict[str, Any]:
        """Return the memory of an object that is in the cache; of another one of its name nothing is left then."""
        kept = self._kept.get(key)
        if kept is None or kept[0] != uid:
            kept = self._kept[key] = (uid, {})
        return kept[1]

    def gone(self, key: str, uid: str) -> None:
        """Drop the memory of an object that is no longer in the cache; that of a successor stays."""
        kept = self._kept.get(key)
        if kept is not None and kept[0] == uid:
            del self._kept[key]

    def clear(self) -> None:
        """Drop all: another process may have worked on the objects before they are looked at again."""
        self._kept.clear()
