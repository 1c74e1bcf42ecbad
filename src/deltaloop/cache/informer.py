"""Cache one kind and notify handlers of changes.

If a relist returns an unchanged object, handlers are not notified. If the buffer of a bounded handler is full, the
informer pops no deltas and reads no events until there is room.

Source: client-go tools/cache/shared_informer.go, controller.go (``NewIndexerInformer``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from functools import cached_property
from itertools import filterfalse
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from deltaloop.api.resource import Resource, decoder
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.controller import Controller, ControllerConfig
from deltaloop.cache.core.deltas import Deltas, DeltaType, WholeList, is_keyed, is_whole_list
from deltaloop.cache.core.process_deltas import (
    ListProcessing,
    Notification,
    process_deltas,
    process_keyed,
)
from deltaloop.cache.core.real_fifo import BATCH_SIZE
from deltaloop.cache.core.reflector.reactions import Reaction, Recovery, is_refusal
from deltaloop.cache.core.reflector.statistics import ReflectorStatistics
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.errors import CacheSyncError, InformerStoppedError, NotFreshError, SyncFailure
from deltaloop.cache.handlers import HandlerOptions
from deltaloop.cache.informer_options import InformerOptions
from deltaloop.cache.lister import Lister
from deltaloop.cache.listwatch import ListerWatcher, drops_managed_fields, shard_selector_of
from deltaloop.cache.metrics import CacheLevels, GuardedCacheMetrics
from deltaloop.cache.queue import new_queue
from deltaloop.cache.received_objects import ReceivedObjects
from deltaloop.cache.shared_processor import SharedProcessor, count_initial
from deltaloop.cache.store import NAMESPACE_INDEX, Indexer, namespace_index_func

if TYPE_CHECKING:
    from deltaloop.api.shard_selector import ShardSelector
    from deltaloop.cache.compression import CacheCompression
    from deltaloop.cache.consistency import ConsistencyChecker
    from deltaloop.cache.core.consistency import ConsistencyReport
    from deltaloop.cache.core.freshness import Freshness
    from deltaloop.cache.interfaces import ReceivedObjectHandler, Registration, ResourceEventHandler

__all__ = ["Informer", "InformerOptions", "new_indexer_informer", "new_informer"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_logger: Final = logging.getLogger("deltaloop.cache")
_DELETED_AT_ONCE: Final = 1000
_is_unchanged: Final = attrgetter("is_unchanged")


@final
class Informer(Generic[T_co]):
    """Cache of one kind with handlers.

    It belongs to one event loop; you can use its lister from any thread.
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher,
        resource_type: ResourceType[T_co],
        *,
        indexers: Mapping[str, IndexFunc[Resource]] | None = None,
        options: InformerOptions | None = None,
    ) -> None:
        """Create an informer. Call ``run`` to start it.

        Args:
            lister_watcher: Source of the objects, usually a ``ListWatch``.
            resource_type: Kind. If it has a class, handlers and listers return instances of it.
            indexers: Index functions by name, in addition to the namespace index.
            options: Resync period, queue, transform, metrics and other settings.

        Raises:
            IndexerConflictError: If an indexer has the name of the namespace index.
        """
        options = options or InformerOptions()
        self.resource_type = resource_type
        self.lister_watcher: ListerWatcher = lister_watcher
        self.name: str = (
            str(lister_watcher) if type(lister_watcher).__str__ is not object.__str__ else str(resource_type)
        )
        self.indexer: Indexer[Resource] = Indexer[Resource](
            indexers={NAMESPACE_INDEX: namespace_index_func}, name=self.name
        )
        self.indexer.add_indexers(indexers or {})
        self.indexer.shard = shard_selector_of(lister_watcher)
        self._options = options
        self._metrics = GuardedCacheMetrics(options.metrics, self.name)
        self._compression: CacheCompression | None = None
        if options.compression is not None:
            from deltaloop.cache.compression import CacheCompression

            self._compression = CacheCompression.of(options.compression, self.name)
        received = ReceivedObjects(
            keep_managed_fields=options.keep_managed_fields or drops_managed_fields(lister_watcher),
            transform=options.transform,
            compression=self._compression,
        )
        self._processor = SharedProcessor[T_co](
            self.name,
            decode=decoder(resource_type),
            objects=self.indexer.list,
            upstream_has_synced=lambda: self.has_synced,
            resync_period=options.resync_period,
            metrics=self._metrics,
        )
        self._queue = new_queue(
            options.queue,
            known_objects=self.indexer,
            transform=received.transform,
            on_version=self.indexer.update_resource_version,
            room=self._processor.room_left,
        )
        self._controller = Controller(
            ControllerConfig(
                lister_watcher=lister_watcher,
                queue=self._queue,
                process=self._process,
                name=self.name,
                reflector_options=options.reflector,
                on_error=self._on_error,
                room=self._processor.room,
                receive=received.receive,
                metrics=options.metrics,
                random=options.random,
            )
        )
        self._refused = asyncio.Event()
        self._started = False
        self._stopped = False
        self._stopped_event = asyncio.Event()

    # State

    @property
    def started(self) -> bool:
        """Whether ``run`` was called."""
        return self._started

    @property
    def stopped(self) -> bool:
        """Whether ``run`` has ended.

        You can still read the cache, but it is no longer updated.
        """
        return self._stopped

    @property
    def has_synced(self) -> bool:
        """Whether the cache contains the first full list.

        Handlers may be behind. Check their registrations.
        """
        return self._queue.has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """Last version received from the server.

        The cache may be older.
        """
        return self._controller.last_sync_resource_version

    def statistics(self) -> ReflectorStatistics:
        """Return the statistics of the reflector."""
        return self._controller.statistics()

    @property
    def stalled_by(self) -> tuple[str, ...]:
        """Names of handlers whose full buffers currently stop the informer."""
        return self._processor.stalled_by

    @property
    def resource_version(self) -> str:
        """Version of the cache, or "" before the first list."""
        return self._queue.processed_version

    def freshness(self) -> Freshness:
        """Return how current the cache is."""
        from deltaloop.cache.core.freshness import Freshness

        seen = self.statistics()
        return Freshness(
            resource_version=self.resource_version,
            seen_resource_version=seen.resource_version,
            waiting=len(self._queue),
            last_event_at=seen.last_event_at,
            last_bookmark_at=seen.last_bookmark_at,
            last_byte_at=seen.last_byte_at,
            pending_bytes=seen.pending_bytes,
            last_confirmed_at=seen.last_confirmed_at,
            relists=max(0, seen.lists - 1),
            restarts=max(0, seen.streams - 1),
            stalled_by=self.stalled_by,
        )

    async def check_consistency(self, *, timeout: float | None = 30.0) -> ConsistencyReport:
        """Compare the cache with a list at exactly its version, which costs a full list.

        To compare periodically, set ``InformerOptions.consistency_period``. Differences are logged as errors but not
        fixed, because they are bugs of deltaloop, the server or a proxy.

        Args:
            timeout: Seconds to wait for an empty queue, or None for no limit.

        Raises:
            NotFreshError: If the queue does not become empty in time.
            GoneError: If the server no longer has the version.
            ApiError, TransportError: If the list fails.
        """
        return await self._consistency.check(timeout=timeout)

    @cached_property
    def _consistency(self) -> ConsistencyChecker:
        from deltaloop.cache.consistency import ConsistencyChecker

        return ConsistencyChecker(
            self.lister_watcher,
            indexer=self.indexer,
            queue=self._queue,
            seen_version=lambda: self.last_sync_resource_version,
            name=self.name,
        )

    def levels(self, now: float) -> CacheLevels:
        """Return the size and age of the cache.

        Call it from any thread; it visits each object.

        Args:
            now: Time of the event loop.
        """
        seen = self.statistics()

        def age(at: float | None) -> float | None:
            return None if at is None else max(0.0, now - at)

        return CacheLevels(
            items=len(self.indexer),
            bytes_held=self.bytes_held(),
            queued=len(self._queue),
            pending=self._processor.pending(),
            resource_version=self.resource_version,
            seen_resource_version=seen.resource_version,
            last_event_age=age(seen.last_event_at),
            last_byte_age=age(seen.last_byte_at),
            last_confirmed_age=age(seen.last_confirmed_at),
        )

    def bytes_held(self) -> int:
        """Return the total size of the stored objects, compressed or as JSON. It visits each object."""
        return sum(obj.stored_size for obj in self.indexer.list())

    async def change_shard(self, shard: ShardSelector) -> None:
        """Cache another shard: list only new ranges, and drop other objects.

        The informer must have a shard selector of the same field. It waits until the cache is complete.
        Handlers receive additions and deletions.

        Raises:
            InformerStoppedError: If the informer stops first.
        """
        await self._controller.change_shard(shard)
        while not (self._queue.is_idle and self.has_synced):
            if self._queue.closed:
                raise InformerStoppedError(f"the informer of {self.name} has stopped, so it cannot change its shard")
            await self._queue.wait_for_progress()
        self.indexer.shard = shard
        lost = [obj for obj in self.indexer.list() if not shard.matches(obj)]
        for start in range(0, len(lost), _DELETED_AT_ONCE):
            some = lost[start : start + _DELETED_AT_ONCE]
            self._queue.write_all([(DeltaType.DELETED, obj, "") for obj in some])
            await asyncio.sleep(0)
        while not self._queue.is_idle and not self._queue.closed:
            await self._queue.wait_for_progress()

    async def wait_for_resource_version(self, resource_version: str, *, timeout: float | None = 30.0) -> None:
        """Wait until the cache includes a resource version, such as the version of your own write.

        Handlers may be behind. Only wait for versions of objects of this kind, because on a quiet kind only bookmarks
        (about one a minute) advance the version.

        Args:
            resource_version: Resource version. If it is not comparable (KEP-5504), only an equal version counts.
            timeout: Seconds, or None for no limit.

        Raises:
            NotFreshError: If the timeout expires.
            InformerStoppedError: If the informer stops first.
        """
        from deltaloop.cache.core.freshness import is_reached

        try:
            async with asyncio.timeout(timeout):
                while not is_reached(resource_version, reached=self.resource_version):
                    if self._queue.closed:
                        raise InformerStoppedError(
                            f"the informer of {self.name} has stopped, so its cache is not updated"
                        )
                    await self._queue.wait_for_progress()
        except TimeoutError:
            raise NotFreshError(
                self.name, wanted=resource_version, reached=self.resource_version, waited=timeout or 0.0
            ) from None

    # Reading

    def lister(self) -> Lister[T_co]:
        """Return a reader of the cache."""
        return Lister(self.indexer, self.resource_type)

    def add_indexers(self, indexers: Mapping[str, IndexFunc[Resource]]) -> None:
        """Add indexes.

        You can call this at any time, and cached objects are indexed immediately.

        Raises:
            IndexerConflictError: If a name has another function.
        """
        self.indexer.add_indexers(indexers)

    # Handlers

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T_co] | ReceivedObjectHandler,
        *,
        name: str = "",
        options: HandlerOptions | None = None,
    ) -> Registration:
        """Notify a handler of all cached objects, and of all changes from now on.

        If you add a handler several times, each registration is independent.

        Args:
            handler: Handler. It runs on the event loop and must not block.
            name: Name in the log, by default the class or functions of the handler.
            options: Resync period and buffer of the handler.

        Raises:
            InformerStoppedError: If the informer has stopped.

        Source: client-go tools/cache/shared_informer.go, ``AddEventHandler``.
        """
        if self._stopped:
            raise InformerStoppedError(f"the informer of {self.name} has stopped, so the handler was not added")
        return self._processor.add(handler, name=name, options=options or HandlerOptions())

    def remove_event_handler(self, registration: Registration) -> None:
        """Remove a handler and drop its pending notifications.

        A current call still completes.

        Registrations that are unknown or already removed are ignored. The handler itself can call this.
        """
        self._processor.remove(registration)

    # Running

    async def run(self) -> None:
        """List, watch and notify handlers until canceled.

        You can call it only once.

        When it returns, all its tasks have ended: first the list, watch and queue, then the handlers. Pending
        notifications are dropped, and waiting handlers are canceled.

        Raises:
            InformerStoppedError: If it was called before.
        """
        if self._started:
            raise InformerStoppedError(f"the informer of {self.name} was already started. Create a new informer.")
        self._started = True
        self._processor.start(self._queue.wait_for_sync)
        _logger.info("informer started", extra={"resource": self.name})
        clock = asyncio.get_running_loop().time

        def levels() -> CacheLevels:
            return self.levels(clock())

        self._metrics.started(levels)
        others: list[asyncio.Task[None]] = []
        if self._compression is not None:
            compressing = self._compression.run(self._queue.wait_for_sync)
            others.append(asyncio.create_task(compressing, name=f"compression of {self.name}"))
        if self._options.consistency_period > 0:
            checking = self._consistency.run(self._options.consistency_period)
            others.append(asyncio.create_task(checking, name=f"consistency checks of {self.name}"))
        try:
            await self._controller.run()
        finally:
            self._stopped = True
            self._stopped_event.set()
            self._metrics.stopped(levels)
            await self._processor.stop(*others)
            _logger.info("informer stopped", extra={"resource": self.name})

    async def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Wait until the cache contains the first full list.

        Args:
            timeout: Seconds, or None for no limit.
            fail_fast: Whether to raise as soon as the server denies access (401, 403) or does not know the kind (404).
                The informer keeps retrying. False waits until the problem is solved.

        Raises:
            CacheSyncError: If the timeout expires, the server denies access, or the informer stops. It names the kind
                and the last error.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        if not is_refusal(self.statistics().last_error):
            self._refused.clear()
        waits: list[asyncio.Task[object]] = [
            asyncio.create_task(self._queue.wait_for_sync()),
            asyncio.create_task(self._stopped_event.wait()),
        ]
        if fail_fast:
            waits.append(asyncio.create_task(self._refused.wait()))
        try:
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if not self.has_synced:
            raise CacheSyncError([self.sync_failure(loop.time() - began, now=loop.time())])

    def sync_failure(self, waited: float, *, now: float) -> SyncFailure:
        """Return why the cache has not synced.

        Args:
            waited: Seconds spent waiting for the first list.
            now: Time of the event loop.
        """
        seen = self.statistics()
        return SyncFailure(
            resource=self.name,
            waited=waited,
            last_error=seen.last_error,
            failing_for=None if seen.failing_since is None else now - seen.failing_since,
            stopped=self._stopped,
            refused=is_refusal(seen.last_error),
        )

    def _on_error(self, reaction: Reaction) -> None:
        if is_refusal(reaction.error) and reaction.recovery is Recovery.LIST_LATER:
            self._refused.set()
        if self._options.on_error is not None:
            self._options.on_error(reaction)

    def _process(self, deltas: Deltas[Resource], is_in_initial_list: bool) -> Awaitable[None] | None:
        if is_whole_list(deltas) and len(deltas) > BATCH_SIZE:  # short lists are processed in one step
            return self._process_list(deltas, is_in_initial_list)
        news: list[Notification[Resource]] = []
        try:
            if is_keyed(deltas):  # both use the default key function
                news = process_keyed(deltas, self.indexer, is_in_initial_list=is_in_initial_list)
            else:
                # keeps the notifications of deltas before an error
                news.extend(
                    filterfalse(
                        _is_unchanged, process_deltas(deltas, self.indexer, is_in_initial_list=is_in_initial_list)
                    )
                )
        finally:  # notify even if a later delta has no key
            initial = count_initial(news) if is_in_initial_list else 0
            for listener in self._processor.listeners:
                listener.add_all(news, initial=initial)
        return None

    async def _process_list(self, deltas: WholeList[Resource], is_in_initial_list: bool) -> None:
        listed = ListProcessing(deltas, self.indexer, is_in_initial_list=is_in_initial_list)
        from deltaloop.cache.turns import in_turns  # for long lists

        await in_turns(listed.fill())
        listed.commit()
        await self._processor.distribute_in_turns(filterfalse(_is_unchanged, listed.tell()))

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else "running" if self._started else "not started"
        synced = "synced" if self.has_synced else "not synced"
        return f"<Informer {self.name}: {len(self.indexer)} objects, {state}, {synced}>"


def new_indexer_informer(
    lister_watcher: ListerWatcher,
    resource_type: ResourceType[T],
    *,
    handler: ResourceEventHandler[T] | ReceivedObjectHandler,
    resync_period: float = 0.0,
    indexers: Mapping[str, IndexFunc[Resource]] | None = None,
) -> tuple[Indexer[Resource], Informer[T]]:
    """Create an informer with one handler, and return its store and the informer.

    Args:
        lister_watcher: Source of the objects, usually a ``ListWatch``.
        resource_type: Kind of the objects.
        handler: Handler of additions, updates and deletions.
        resync_period: Seconds between resyncs, or 0 for none.
        indexers: Index functions by name.

    Returns:
        Store with indexes, and the informer. Call ``run`` on the informer to start it.

    Source: client-go tools/cache/controller.go, ``NewIndexerInformer``.
    """
    informer = Informer(
        lister_watcher, resource_type, indexers=indexers, options=InformerOptions(resync_period=resync_period)
    )
    informer.add_event_handler(handler)
    return informer.indexer, informer


def new_informer(
    lister_watcher: ListerWatcher,
    resource_type: ResourceType[T],
    *,
    handler: ResourceEventHandler[T] | ReceivedObjectHandler,
    resync_period: float = 0.0,
) -> tuple[Indexer[Resource], Informer[T]]:
    """Create an informer with one handler and no additional indexes, like ``new_indexer_informer``.

    ``resync_period`` is in seconds; 0 disables resyncs.
    """
    return new_indexer_informer(lister_watcher, resource_type, handler=handler, resync_period=resync_period)
