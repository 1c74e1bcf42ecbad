"""Decide the keys of a member by the labels of the objects, which can change (internals/machines/sharding.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, final

from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import label_hash, shard_hash
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.sharding.core.key_ranges import KeyRanges

NOWHERE: Final = -1
_MOST_DELETED: Final = 100_000


@final
class LabelKeys:
    """Keys of one member.

    Attributes:
        waiting: Keys that entered the share, and the versions that all other members must have seen.
        left: Keys that changed during a reconcile or write, with the former hash and the version of the change.
    """

    def __init__(self, label: str, *, is_busy: Callable[[str], bool]) -> None:
        self.label = label
        self.namespaced: bool = True
        self.waiting: dict[str, int] = {}
        self.left: dict[str, tuple[int, int]] = {}
        self._is_busy = is_busy
        self._known: dict[str, tuple[int, int]] = {}  # hash and version
        self._deleted: dict[str, None] = {}

    # -- changes of objects

    def listed(self, obj: Resource, *, selected: bool, whole: bool) -> bool:
        key, before = obj.key, self._known.get(obj.key)
        if before is not None and obj.version > before[1] and (selected or whole):
            self._miss(key, before)
        if selected:
            return self._saw(obj, exists=True) or key in self._known
        return False

    def replaced(self, keys: Collection[str]) -> None:
        for key, before in [each for each in self._known.items() if each[0] not in keys]:
            self._miss(key, before)

    def _miss(self, key: str, before: tuple[int, int]) -> None:
        # Unknown changes followed the known state, so another member could own the key.
        self._pin(key, before[0], before[1] + 1)
        self._forget(key)

    def follow(self, event: WatchEvent, *, selected: bool) -> WatchEvent | None:
        obj, before = event.object, self._known.get(event.object.key)
        if before is not None and obj.version <= before[1]:
            return None
        if selected:
            return event if self._saw(obj, exists=event.type is not EventType.DELETED) else None
        if before is None:
            return None
        was_deleted = obj.key in self._deleted
        self._pin(obj.key, before[0], obj.version)
        self._forget(obj.key)
        return None if was_deleted else WatchEvent(EventType.DELETED, obj)

    def _saw(self, obj: Resource, *, exists: bool) -> bool:
        key, version = obj.key, obj.version
        number, before = label_hash(obj, self.label), self._known.get(key)
        if before is not None and version <= before[1]:
            return False
        if before is None:
            self.waiting[key] = version
        elif before[0] != number:
            self._pin(key, before[0], version)
        self._known[key] = number, version
        self._deleted.pop(key, None)
        if not exists:  # the owner still reconciles the deletion
            self._deleted[key] = None
            if len(self._deleted) > _MOST_DELETED:
                self._forget(next(iter(self._deleted)))
        return True

    def _pin(self, key: str, number: int, version: int) -> None:
        if self._is_busy(key):
            self.left[key] = min(self.left.get(key, (number, version)), (number, version), key=lambda each: each[1])

    def _forget(self, key: str) -> None:
        self._known.pop(key, None)
        self._deleted.pop(key, None)
        self.waiting.pop(key, None)

    # -- ranges and terms

    def hold(self, ranges: KeyRanges) -> None:
        for key in [key for key, (number, _) in self._known.items() if number not in ranges]:
            self._forget(key)

    def restart(self) -> None:
        self.waiting = {key: version for key, (_, version) in self._known.items()}

    # -- questions

    def number_of(self, key: str) -> int:
        known = self._known.get(key)
        if known is not None:
            return known[0]
        return shard_hash(key) if self.namespaced and "/" not in key else NOWHERE

    def numbers_of(self, key: str) -> tuple[int, ...]:
        """Return the present hash, and the former one while work began before the change."""
        left = self.left.get(key)
        return (self.number_of(key),) if left is None else (self.number_of(key), left[0])

    def may_begin(self, key: str) -> bool:
        return key not in self.waiting

    def seen(self, reached: int) -> int:
        """Return the version to publish when the caches have reached a version."""
        self.left = {key: each for key, each in self.left.items() if self._is_busy(key)}
        return min([reached, *(version - 1 for _, version in self.left.values())])

    def release(self, asked: Mapping[str, int], seen_by_all: float) -> list[str]:
        """Release keys; ``asked`` are the keys that waited before the other members were read."""
        free = [key for key, version in asked.items() if version <= seen_by_all and self.waiting.get(key) == version]
        for key in free:
            del self.waiting[key]
        return free
