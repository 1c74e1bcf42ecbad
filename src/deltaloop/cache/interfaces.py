"""Protocols of the cache."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar, runtime_checkable

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.shard_selector import ShardSelector
from deltaloop.api.watch_event import WatchEvent
from deltaloop.cache.core.deltas import Unread
from deltaloop.client.verbs.resource_list import ResourceList

T_contra = TypeVar("T_contra", contravariant=True)


class ListWatchClient(Protocol):
    """Methods of a ``Client`` that caches need."""

    async def list(
        self,
        kind: ResourceType[Resource],
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        metadata_only: bool = ...,
    ) -> ResourceList[Resource]:
        """Return one page of a list, of all namespaces if ``namespace`` is None.

        With ``metadata_only``, the items are ``PartialObjectMetadata``.
        """
        ...

    def watch(
        self,
        kind: ResourceType[Resource],
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        metadata_only: bool = ...,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch, of all namespaces if ``namespace`` is None.

        With ``metadata_only``, the objects are ``PartialObjectMetadata``.
        """
        ...


@runtime_checkable
class ByteStream(Protocol):
    """Watch stream that reports received bytes, such as the stream of ``Client.watch``.

    It reveals streams that stall within an object.
    """

    @property
    def last_byte_at(self) -> float:
        """Time of the last byte on the event loop's clock."""
        ...

    @property
    def pending_bytes(self) -> int:
        """Received bytes of an incomplete event."""
        ...


class BatchStream(Protocol):
    """Watch stream that can be read in batches."""

    consume: Callable[[], bool] | None

    async def batch(self) -> Sequence[WatchEvent]:
        """Wait for the next event, and return it with the events that arrived after it, or nothing at the end."""
        ...

    def received(self) -> Sequence[WatchEvent]:
        """Return received events without waiting."""
        ...


class ReflectorStore(Protocol):
    """Target of a reflector: a queue of deltas, or a ``Store`` for a plain mirror."""

    def add(self, obj: Resource) -> None:
        """Add an object."""
        ...

    def update(self, obj: Resource) -> None:
        """Update an object."""
        ...

    def delete(self, obj: Resource) -> None:
        """Delete an object."""
        ...

    def replace(self, objects: tuple[Resource, ...], resource_version: str, unread: Unread) -> None:
        """Replace all objects.

        Known states of ``unread`` objects are kept.
        """
        ...


@runtime_checkable
class ResourceVersionUpdater(Protocol):
    """Store that records its version."""

    def update_resource_version(self, resource_version: str) -> None:
        """Record that all changes up to this version were passed to the store."""
        ...


@runtime_checkable
class TurnTaker(Protocol):
    """Store that accepts a long list without blocking other tasks."""

    async def replace_in_turns(self, objects: tuple[Resource, ...], resource_version: str, unread: Unread) -> None:
        """Replace all objects, but keep known states of ``unread`` objects."""
        ...


class ReadableIndexer(Protocol):
    """Read methods of an ``Indexer`` that listers need."""

    @property
    def shard(self) -> ShardSelector | None:
        """Shard, or None."""
        ...

    def get_by_key(self, key: str) -> Resource | None:
        """Return an object, or None."""
        ...

    def list(self) -> builtins.list[Resource]:
        """Return all objects."""
        ...

    def by_index(self, name: str, value: str) -> builtins.list[Resource]:
        """Return the objects with an index value."""
        ...

    def __len__(self) -> int: ...


class ResourceEventHandler(Protocol[T_contra]):
    """Handler of the changes of one informer, called in order and one at a time.

    The methods run on the event loop. Plain methods must return quickly. An async method delays only its own further
    calls. Exceptions are logged with the handler's name, and the item counts as delivered.
    """

    def on_add(self, obj: T_contra, *, is_in_initial_list: bool) -> object:
        """Handle an object that is new in the cache, although it may have existed for long.

        Args:
            obj: Object. Do not modify it.
            is_in_initial_list: Whether the object existed when the informer or this handler started.
        """
        ...

    def on_update(self, old: T_contra, new: T_contra) -> object:
        """Handle a change.

        For a resync, ``old is new``. Different uids mean that the object was deleted and recreated.
        """
        ...

    def on_delete(self, obj: T_contra, *, final_state_known: bool) -> object:
        """Handle a deletion.

        Args:
            obj: Last known state.
            final_state_known: False if the informer missed the deletion, so that ``obj`` may be outdated.
        """
        ...


class ReceivedObjectHandler(ResourceEventHandler[Resource], Protocol):
    """Handler that always receives ``Resource`` instances, even if the kind has a class."""

    @property
    def takes_resources(self) -> bool:
        """Always True, which identifies this type of handler."""
        ...


class Registration(Protocol):
    """Registration of a handler at an informer."""

    @property
    def name(self) -> str:
        """Name of the handler in the log."""
        ...

    @property
    def has_synced(self) -> bool:
        """Whether all objects of the initial list were delivered to this handler, including failed deliveries."""
        ...

    @property
    def pending(self) -> int:
        """Number of pending notifications."""
        ...

    @property
    def failures(self) -> int:
        """Number of failed deliveries: the handler raised, or the object does not fit its class."""
        ...
