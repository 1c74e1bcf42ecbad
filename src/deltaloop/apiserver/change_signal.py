"""Notification of waiting tasks and callbacks after changes of the store."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, final

from deltaloop.api import kinds
from deltaloop.apiserver.core.storage.store import CompactedError, RevisionStore

ALL_RESOURCES: Final = "*"
WHILE_DELETING: Final = "**"
"""All resources, but only while an object is being deleted."""
_CRDS: Final = kinds.CUSTOM_RESOURCE_DEFINITION.group_resource
# Notifying this many callbacks costs more than empty iterations of the event loop.
_MANY: Final = 8
# Requests that have arrived are read in the next iteration and answered in the one after.
_TURNS: Final = 2


@final
class ChangeSignal:
    """Events and callbacks that are triggered when a resource changes.

    All waiters wake from time to time; otherwise a busy resource would push a quiet watch's cursor out of the store's
    window.
    """

    def __init__(self, store: RevisionStore, *, stride: int) -> None:
        """Watch a store, and wake all waiters after ``stride`` changes, which must be less than its window."""
        self._store = store
        self._stride = stride
        self._published = store.revision
        self._woke_all_at = store.revision
        # Ordered, so that the first subscriber is notified first.
        self._waiting: defaultdict[str, dict[asyncio.Event, None]] = defaultdict(dict)
        self._looking: defaultdict[str, dict[Callable[[], None], None]] = defaultdict(dict)
        self._due: dict[str, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    @contextmanager
    def subscribe(self, resource: str = ALL_RESOURCES) -> Generator[asyncio.Event]:
        """Provide an event that is set after changes of a resource and at the end.

        Clear it before reading the store.
        """
        event = asyncio.Event()
        if self._closed:
            event.set()
        self._waiting[resource][event] = None
        try:
            yield event
        finally:
            del self._waiting[resource][event]
            if not self._waiting[resource]:
                del self._waiting[resource]

    @contextmanager
    def notify(self, resource: str, look: Callable[[], None]) -> Generator[None]:
        """Register a callback for changes of a resource and for the end. It must neither block nor fail."""
        self._loop = asyncio.get_running_loop()
        self._looking[resource][look] = None
        try:
            yield
        finally:
            del self._looking[resource][look]
            if not self._looking[resource]:
                del self._looking[resource]

    def publish(self) -> None:
        """Wake the waiters for changes since the last call. Call this after every write."""
        revision = self._store.revision
        if revision == self._published:
            return
        try:
            changes = self._store.changes_after(self._published, limit=self._stride)
            changed = dict.fromkeys(change.resource for change in changes)
            # Watches of custom resources check whether their CRD has changed.
            changed |= dict.fromkeys(change.key for change in changes if change.resource == _CRDS)
        except CompactedError:
            changed = self._everything()
        if revision - self._woke_all_at >= self._stride:
            self._woke_all_at = revision
            changed = self._everything()
        self._published = revision
        for resource in (*changed, ALL_RESOURCES):
            self._wake(resource)
        if self._store.is_deleting:
            self._wake(WHILE_DELETING)

    def close(self) -> None:
        self._closed = True
        for resource in self._everything():
            self._wake(resource)

    def _everything(self) -> dict[str, None]:
        return dict.fromkeys((*self._waiting, *self._looking))

    def _wake(self, resource: str) -> None:
        for event in self._waiting.get(resource, ()):
            event.set()
        if resource in self._looking:
            self._tell_soon(resource)

    def _tell_soon(self, resource: str) -> None:
        if self._loop is not None and not self._due:
            wide = len(self._looking[resource]) >= _MANY
            self._loop.call_soon(self._tell_after, _TURNS if wide else 0)
        self._due[resource] = None

    def _tell_after(self, turns: int) -> None:
        if turns and not self._closed and self._loop is not None:
            self._loop.call_soon(self._tell_after, turns - 1)
            return
        due, self._due = self._due, {}
        for resource in due:
            for look in tuple(self._looking.get(resource, ())):
                look()
