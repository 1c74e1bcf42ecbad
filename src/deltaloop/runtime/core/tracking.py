"""Which foreign objects the keys of one controller track, and which watches that takes.

    not tracked ──a run tracks it──▶ tracked ──the last key releases it──▶ not tracked, its watch ends

A key releases what its latest successful run did not track again, and everything once its own object is gone; a failed
run releases nothing, since it may have ended before it came to track. An object that goes while its key runs releases
at the end of that run, so that no watch ends under a run that waits for it.

Each object has a watch of its own until ``shared_from`` objects of one kind and namespace are tracked: from then on one
watch of that namespace serves what is tracked anew. Those that run go on until their objects are released, so nothing
moves and no change can be missed; and the shared one goes on until nothing is tracked there, so that a number of
objects about the bound does not start and stop it.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

SHARED_FROM: Final = 20
"""From so many tracked objects of one kind and namespace on, one watch of the namespace is cheaper."""


@final
class Tracked(msgspec.Struct, frozen=True):
    """A foreign object, or a watch: of one object, or of all that there are of a kind in a namespace.

    Attributes:
        kind: The kind, such as ``v1/Secret``.
        namespace: Its namespace; empty for kinds without.
        name: The object's name; empty for all.
    """

    kind: str
    namespace: str
    name: str = ""

    @property
    def everything(self) -> Tracked:
        """What there is of the kind in the namespace."""
        return Tracked(self.kind, self.namespace)


@final
class Tracking:
    """What the keys of one controller track."""

    def __init__(self, shared_from: int = SHARED_FROM) -> None:
        """Begin without tracked objects.

        Args:
            shared_from: From how many objects of one kind and namespace on new ones share a watch.
        """
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
        """Take that the run of a key tracks an object; return the watch that serves it, to be started if it is new."""
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
        """Return the keys that a change of an object concerns."""
        return tuple(self._keys.get(tracked, ()))

    def ended(self, key: str, *, succeeded: bool, exists: bool) -> tuple[Tracked, ...]:
        """Take the end of a key's run; return the watches to end.

        Args:
            key: Which key.
            succeeded: Whether it ended as it should.
            exists: Whether the key's own object is there.
        """
        latest = self._latest.pop(key, set[Tracked]())
        if key in self._gone or not exists:
            self._gone.discard(key)
            return self._release(key, self._held.get(key, set()))
        return self._release(key, self._held.get(key, set()) - latest) if succeeded else ()

    def gone(self, key: str) -> tuple[Tracked, ...]:
        """Take that the key's own object is gone, or another one; return the watches to end."""
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
