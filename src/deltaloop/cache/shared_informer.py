"""What an informer is to those who use it, under client-go's names: a protocol for one informer and for several.

``Informer`` is the one that does the work; ``MultiNamespaceInformer`` is several of them that look like one.

Source: client-go tools/cache/shared_informer.go (``SharedInformer``, ``SharedIndexInformer``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.handlers import HandlerOptions, ReceivedObjectHandler, ResourceEventHandler
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.listener import Registration
from deltaloop.cache.lister import Lister
from deltaloop.cache.listwatch import ListerWatcher

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class SharedInformer(Protocol[T_co]):
    """A cache of one kind that any number of handlers and listers share."""

    @property
    def name(self) -> str:
        """What is cached, as in the log."""
        ...

    @property
    def resource_type(self) -> ResourceType[T_co]:
        """Which kind."""
        ...

    @property
    def has_synced(self) -> bool:
        """Whether the first full list is in the cache."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether it has ended."""
        ...

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T_co] | ReceivedObjectHandler,
        *,
        name: str = "",
        options: HandlerOptions | None = None,
    ) -> Registration:
        """Tell a handler about every object that is there and every change from now on."""
        ...

    def remove_event_handler(self, registration: Registration) -> None:
        """Tell a handler nothing more."""
        ...

    async def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Wait until the first full list is in the cache, or raise ``CacheSyncError``.

        ``timeout`` is in seconds; None waits for ever.
        """
        ...

    def lister(self) -> Lister[T_co]:
        """Return a reader of the cache."""
        ...


class SharedIndexInformer(SharedInformer[T_co], Protocol[T_co]):
    """A shared informer whose cache has indexes."""

    def add_indexers(self, indexers: Mapping[str, IndexFunc[Resource]]) -> None:
        """Add indexes at any time."""
        ...


def new_shared_informer(
    lister_watcher: ListerWatcher, resource_type: ResourceType[T], *, resync_period: float = 0.0
) -> Informer[T]:
    """Make an informer without indexes of one's own; run it with ``Informer.run``.

    ``resync_period`` is in seconds; 0 is never.

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
    """Make an informer; its ``run`` does the work.

    Args:
        lister_watcher: Lists and watches the objects, usually a ``ListWatch``.
        resource_type: The kind of the objects.
        resync_period: Every so many seconds each handler without a period of its own is told all objects again.
        indexers: Index functions by name.

    Source: client-go tools/cache/shared_informer.go, ``NewSharedIndexInformer``.
    """
    return Informer(
        lister_watcher, resource_type, indexers=indexers, options=InformerOptions(resync_period=resync_period)
    )
