"""Wakes those who wait for the store to change."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, final

from deltaloop.apiserver.core.store import Store
from deltaloop.apiserver.core.store_errors import CompactedError

ALL_RESOURCES: Final = "*"


@final
class ChangeSignal:
    """Events for waiters, set when a resource that they wait for has changed.

    Everybody is woken now and then whatever has changed, so that a watcher of a quiet resource moves its cursor on and
    does not fall out of the store's window because of a busy one.
    """

    def __init__(self, store: Store, *, stride: int) -> None:
        """Watch this store.

        Args:
            store: What changes.
            stride: After how many changes everybody is woken; a part of the store's window.
        """
        self._store = store
        self._stride = stride
        self._published = store.revision
        self._woke_all_at = store.revision
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the server stops; whoever waits ends what it does."""
        return self._closed

    @contextmanager
    def subscribe(self, resource: str = ALL_RESOURCES) -> Generator[asyncio.Event]:
        """Give an event that is set after changes of a resource and at the end; clear it, then look at the store."""
        event = asyncio.Event()
        if self._closed:
            event.set()
        self._waiting[resource].add(event)
        try:
            yield event
        finally:
            self._waiting[resource].discard(event)
            if not self._waiting[resource]:
                del self._waiting[resource]

    def publish(self) -> None:
        """Wake those who wait for what has changed since the last call; call it after every write."""
        revision = self._store.revision
        if revision == self._published:
            return
        try:
            changes = self._store.changes_after(self._published, limit=self._stride)
            changed = {change.resource for change in changes}
        except CompactedError:
            changed = set(self._waiting)
        if revision - self._woke_all_at >= self._stride:
            self._woke_all_at = revision
            changed = set(self._waiting)
        self._published = revision
        for resource in (*changed, ALL_RESOURCES):
            for event in self._waiting.get(resource, ()):
                event.set()

    def close(self) -> None:
        """Wake everybody for the last time."""
        self._closed = True
        for events in self._waiting.values():
            for event in events:
                event.set()
