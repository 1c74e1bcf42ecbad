"""Protocols of informers under client-go's names.

Source: client-go tools/cache/shared_informer.go (``SharedInformer``, ``SharedIndexInformer``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.handlers import HandlerOptions
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.lister import Lister
from deltaloop.cache.listwatch import ListerWatcher

if TYPE_CHECKING:
    from deltaloop.cache.interfaces import ReceivedObjectHandler, Registration, ResourceEventHandler

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class SharedInformer(Protocol[T_co]):
    """Cache of one kind that any number of handlers and listers share."""

    @property
    def name(self) -> str:
        """Name in the log."""
        ...

    @property
    def resource_type(self) -> ResourceType[T_co]:
        """Kind of the objects."""
        ...

    @property
    def has_synced(self) -> bool:
        """Whether the cache contains the first full list."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether the informer has ended."""
        ...

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T_co] | ReceivedObjectHandler,
        *,
        name: str = "",
        options: HandlerOptions | None = None,
    ) -> Registration:
        """Notify a handler of all cached objects, and of all changes from now on."""
        ...

    def remove_event_handler(self, registration: Registration) -> None:
        """Remove a handler."""
        ...

    async def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Wait until the cache contains the first full list, or raise ``CacheSyncError``.

        ``timeout`` is in seconds; None means no limit.
        """
        ...

    def lister(self) -> Lister[T_co]:
        """Return a reader of the cache."""
        ...


class SharedIndexInformer(SharedInformer[T_co], Protocol[T_co]):
    """Shared informer whose cache has indexes."""

    def add_indexers(self, indexers: Mapping[str, IndexFunc[Resource]]) -> None:
        """Add indexes at any time."""
        ...


def new_shared_informer(
    lister_watcher: ListerWatcher, resource_type: ResourceType[T], *, resync_period: float = 0.0
) -> Informer[T]:
    """Create an informer without additional indexes.

    Call ``run`` to start it.

    ``resync_period`` is in seconds; 0 disables resyncs.

    Source: client-go tools/cache/shared_informer.go, ``NewSharedInformer``.
    """
    return new_shared_index_informer(lister_watcher, resource_type, resync_period=resync_period)


def new_shared_index_informer(
    lister_watcher: ListerWatcher,
    resource_type: ResourceType[T],
    *,
    resync_period: float = 0.0,
    indexers: Mapping[str, IndexFunc[Resource]] | None = None,
) -> Informer[T]:
    """Create an informer.

    Call ``run`` to start it.

    Args:
        lister_watcher: Source of the objects, usually a ``ListWatch``.
        resource_type: Kind of the objects.
        resync_period: Seconds between resyncs for handlers without their own period, or 0 for none.
        indexers: Index functions by name.

    Source: client-go tools/cache/shared_informer.go, ``NewSharedIndexInformer``.
    """
    return Informer(
        lister_watcher, resource_type, indexers=indexers, options=InformerOptions(resync_period=resync_period)
    )
