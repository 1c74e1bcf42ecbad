"""State of the objects that a controller's keys track, and of the watches for them.

    not tracked ──a reconcile tracks it──▶ tracked ──the last key releases it──▶ not tracked, its watch ends

A successful reconcile releases the objects that it did not track again, and a key without its own object releases all.

Each object has its own watch until ``shared_from`` objects of one kind and namespace are tracked. Objects that are
tracked afterwards share a watch of the namespace, which continues until nothing is tracked there.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

SHARED_FROM: Final = 20
"""Number of tracked objects of one kind and namespace from which one shared watch is cheaper."""


@final
class Tracked(msgspec.Struct, frozen=True):
    """A tracked object, or a watch of one object or of all objects of a kind in a namespace (without a name)."""

    kind: str
    namespace: str
    name: str = ""

    @property
    def everything(self) -> Tracked:
        """Return the watch of all objects of the kind in the namespace."""
        return Tracked(self.kind, self.namespace)


@final
class Tracking:
    def __init__(self, shared_from: int = SHARED_FROM) -> None:
        self._shared_from = shared_from
        self._held: dict[str, set[Tracked]] = {}
        self._latest: dict[str, set[Tracked]] = {}
        self._gone: set[str] = set()
        self._keys: dict[Tracked, set[str]] = {}
        self._watches: dict[Tracked, Tracked] = {}
        self._places: dict[Tracked, set[Tracked]] = {}
        self._shared: set[Tracked] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def track(self, key: str, tracked: Tracked) -> Tracked:
        """Record that a key's reconcile tracks an object, and return the watch to use or start."""
        self._latest.setdefault(key, set()).add(tracked)
        self._held.setdefault(key, set()).add(tracked)
        self._keys.setdefault(tracked, set()).add(key)
        if tracked not in self._watches:
            self._watches[tracked] = self._watch_for(tracked)
        return self._watches[tracked]

    def _watch_for(self, tracked: Tracked) -> Tracked:
        place = tracked.everything
        here = self._places.setdefault(place, set())
        here.add(tracked)
        if len(here) >= self._shared_from:
            self._shared.add(place)
        return place if place in self._shared else tracked

    def keys_of(self, tracked: Tracked) -> tuple[str, ...]:
        return tuple(self._keys.get(tracked, ()))

    def ended(self, key: str, *, succeeded: bool, exists: bool) -> tuple[Tracked, ...]:
        """Record the end of a key's reconcile, and return the watches to end."""
        latest = self._latest.pop(key, set[Tracked]())
        if key in self._gone or not exists:
            self._gone.discard(key)
            return self._release(key, self._held.get(key, set()))
        return self._release(key, self._held.get(key, set()) - latest) if succeeded else ()

    def gone(self, key: str) -> tuple[Tracked, ...]:
        """Record that the key's own object is gone or replaced, and return the watches to end."""
        if key in self._latest:
            self._gone.add(key)
            return ()
        return self._release(key, self._held.get(key, set()))

    def _release(self, key: str, released: set[Tracked]) -> tuple[Tracked, ...]:
        ending: list[Tracked] = []
        for tracked in sorted(released, key=lambda each: (each.kind, each.namespace, each.name)):
            self._held[key].discard(tracked)
            self._keys[tracked].discard(key)
            if not self._keys[tracked]:
                ending += self._untracked(tracked)
        if not self._held.get(key):
            self._held.pop(key, None)
        return tuple(ending)

    def _untracked(self, tracked: Tracked) -> list[Tracked]:
        del self._keys[tracked]
        place, watch = tracked.everything, self._watches.pop(tracked)
        ending = [watch] if watch == tracked else []
        self._places[place].discard(tracked)
        if not self._places[place]:
            del self._places[place]
            if place in self._shared:
                self._shared.discard(place)
                ending.append(place)
        return ending
