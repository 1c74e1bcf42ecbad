"""In-memory data of a controller about its objects, one dict per object.

no memory ──first use──▶ kept ──object deleted, replaced by a successor, or the term ends──▶ no memory
"""

from __future__ import annotations

from typing import Any, final


@final
class Memories:
    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, dict[str, Any]]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, key: str, uid: str) -> dict[str, Any]:
        """Return the memory of a cached object, and drop the memory of a predecessor of the same name."""
        kept = self._kept.get(key)
        if kept is None or kept[0] != uid:
            kept = self._kept[key] = (uid, {})
        return kept[1]

    def gone(self, key: str, uid: str) -> None:
        """Drop the memory of an object that left the cache, but not that of its successor."""
        kept = self._kept.get(key)
        if kept is not None and kept[0] == uid:
            del self._kept[key]

    def clear(self) -> None:
        """Drop all memories, because another process may reconcile the objects before this one continues."""
        self._kept.clear()
