"""Keeps a cache of one kind and tells handlers about every change; the decisions are in core/process_deltas.py.

    Reflector ──▶ DeltaFIFO ──▶ process: Indexer first, then every Listener's buffer ──▶ handlers

One informer serves any number of handlers and listers. A handler added while it runs is first told every object that
is there (``is_in_initial_list=True``), then what happens next, with nothing lost or doubled between.

An unchanged object that a relist brings again (same uid and resource version) is stored and told to nobody. A resync
is told to everybody, as an update whose old and new are one object.

Source: client-go tools/cache/shared_informer.go, controller.go (``NewIndexerInformer``).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.controller import Controller, ControllerConfig
from deltaloop.cache.core.deltas import Deltas
from deltaloop.cache.core.listwatch import Reaction, ReflectorOptions, ReflectorStatistics
from deltaloop.cache.core.process_deltas import AddNotification, UpdateNotification, process_deltas
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.delta_fifo import DeltaFIFO
from deltaloop.cache.errors import CacheSyncError, InformerStoppedError, SyncFailure
from deltaloop.cache.handlers import ResourceEventHandler, handler_name
from deltaloop.cache.listener import Listener, Registration
from deltaloop.cache.lister import Lister, decoder
from deltaloop.cache.listwatch import ListerWatcher
from deltaloop.cache.store import NAMESPACE_INDEX, Indexer, namespace_index_func

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.cache")


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerOptions:
    """Options of an informer.

    Attributes:
        resync_period: Every so many seconds every handler is told all objects again, from the cache; 0 is never, less
            than 1 is 1.
        reflector: Numbers of listing, watching and waiting.
        on_error: Called with every error of list and watch, and what follows it; they are logged in any case.
        chance: Draws the numbers in [0, 1) that spread waits and watch timeouts.
    """

    resync_period: float = 0.0
    reflector: ReflectorOptions = field(default_factory=ReflectorOptions)
    on_error: Callable[[Reaction], object] | None = None
    chance: Callable[[], float] = random.random


@final
class Informer(Generic[T]):
    """A cache of one kind with handlers; lives on one event loop, its lister may be used from any thread."""

    def __init__(
        self,
        lister_watcher: ListerWatcher,
        resource_type: ResourceType[T],
        *,
        indexers: Mapping[str, IndexFunc[Resource]] | None = None,
        options: InformerOptions | None = None,
    ) -> None:
        """Make an informer that does nothing yet.

        Args:
            lister_watcher: Where objects come from.
            resource_type: Which kind; its class, if it has one, is what handlers and listers give out.
            indexers: Index functions by name, beside the one by namespace.
            options: Options.

        Raises:
            IndexerConflictError: If an indexer takes the name of the namespace index.
        """
        options = options or InformerOptions()
        self.resource_type = resource_type
        self.name = str(lister_watcher) if type(lister_watcher).__str__ is not object.__str__ else str(resource_type)
        self.indexer = Indexer[Resource](indexers={NAMESPACE_INDEX: namespace_index_func}, name=self.name)
        self.indexer.add_indexers(indexers or {})
        self._decode = decoder(resource_type)
        self._queue = DeltaFIFO[Resource](known_objects=self.indexer)
        self._controller = Controller(
            ControllerConfig(
                lister_watcher=lister_watcher,
                queue=self._queue,
                process=self._process,
                name=self.name,
                reflector_options=options.reflector,
                resync_period=options.resync_period,
                on_error=options.on_error,
                chance=options.chance,
            )
        )
        self._listeners: dict[Listener[T], asyncio.Task[None] | None] = {}
        self._ending: set[asyncio.Task[None]] = set()
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
        """Whether ``run`` has ended; the cache stays readable and is no longer kept up."""
        return self._stopped

    @property
    def has_synced(self) -> bool:
        """Whether the first full list is in the cache. Handlers may be behind: ask their registrations."""
        return self._controller.has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """The last version seen; the cache may be a little behind."""
        return self._controller.last_sync_resource_version

    def statistics(self) -> ReflectorStatistics:
        """Return what was listed, watched and failed so far, and when the server last confirmed the state."""
        return self._controller.statistics()

    # Reading

    def lister(self) -> Lister[T]:
        """Return a reader of the cache."""
        return Lister(self.indexer, self.resource_type)

    def add_indexers(self, indexers: Mapping[str, IndexFunc[Resource]]) -> None:
        """Add indexes at any time; what is cached is filed under them at once.

        Raises:
            IndexerConflictError: If a name is taken by another function.
        """
        self.indexer.add_indexers(indexers)

    # Handlers

    def add_event_handler(self, handler: ResourceEventHandler[T], *, name: str = "") -> Registration:
        """Tell a handler about every change from now on, and first about every object that is there.

        The same handler may be added several times; each time is a registration of its own.

        Args:
            handler: Whom to tell, on the event loop.
            name: What to call it in the log; its class or functions by default.

        Raises:
            InformerStoppedError: If the informer has stopped: nothing would ever come.

        Source: client-go tools/cache/shared_informer.go, ``AddEventHandler``.
        """
        if self._stopped:
            raise InformerStoppedError(f"the informer of {self.name} has stopped; the handler was not added")
        listener = Listener(
            handler,
            self._decode,
            name=name or handler_name(handler),
            resource=self.name,
            upstream_has_synced=lambda: self.has_synced,
        )
        for obj in self.indexer.list():
            listener.add(AddNotification(obj, is_in_initial_list=True))
        self._listeners[listener] = self._start(listener) if self._started else None
        return listener

    def remove_event_handler(self, registration: Registration) -> None:
        """Tell a handler nothing more; what waits for it is dropped, a call that it is in goes on to its end.

        Removing twice, or what belongs to another informer, does nothing. May be called by the handler itself.
        """
        for listener in [known for known in self._listeners if known is registration]:
            task = self._listeners.pop(listener)
            listener.close()
            if task is not None:
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    # Running

    async def run(self) -> None:
        """List, watch and tell until cancelled; call it once.

        When it returns, everything that it started has ended: first list, watch and queue, then the handlers. What
        was not delivered yet is dropped; a handler that waits is cancelled.

        Raises:
            InformerStoppedError: If it runs already, or has run.
        """
        if self._started:
            raise InformerStoppedError(f"the informer of {self.name} was started before; make a new one")
        self._started = True
        for listener in self._listeners:
            self._listeners[listener] = self._start(listener)
        _logger.info("informer started", extra={"resource": self.name})
        try:
            await self._controller.run()
        finally:
            self._stopped = True
            self._stopped_event.set()
            tasks = [task for task in (*self._listeners.values(), *self._ending) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            _logger.info("informer stopped", extra={"resource": self.name})

    async def wait_for_sync(self, timeout: float | None = 30.0) -> None:
        """Wait until the first full list is in the cache.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            CacheSyncError: If that takes longer, or the informer stops; it names the kind, the last error and since
                when.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        waits: list[asyncio.Task[object]] = [
            asyncio.create_task(self._queue.wait_for_sync()),
            asyncio.create_task(self._stopped_event.wait()),
        ]
        try:
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if not self.has_synced:
            raise CacheSyncError([self.sync_failure(loop.time() - began, now=loop.time())])

    def sync_failure(self, waited: float, *, now: float) -> SyncFailure:
        """Return what is known about why the cache is not full.

        Args:
            waited: Seconds that were waited.
            now: The event loop's time.
        """
        seen = self.statistics()
        return SyncFailure(
            resource=self.name,
            waited=waited,
            last_error=seen.last_error,
            failing_for=None if seen.failing_since is None else now - seen.failing_since,
            stopped=self._stopped,
        )

    def _start(self, listener: Listener[T]) -> asyncio.Task[None]:
        return asyncio.create_task(listener.run(), name=f"handler {listener.name} of {self.name}")

    def _process(self, deltas: Deltas[Resource], is_in_initial_list: bool) -> None:
        for notification in process_deltas(deltas, self.indexer, is_in_initial_list=is_in_initial_list):
            if isinstance(notification, UpdateNotification) and notification.is_unchanged:
                continue
            for listener in self._listeners:
                listener.add(notification)

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else "running" if self._started else "not started"
        synced = "synced" if self.has_synced else "not synced"
        return f"<Informer {self.name}: {len(self.indexer)} objects, {state}, {synced}>"


def new_indexer_informer(
    lister_watcher: ListerWatcher,
    resource_type: ResourceType[T],
    *,
    handler: ResourceEventHandler[T],
    resync_period: float = 0.0,
    indexers: Mapping[str, IndexFunc[Resource]] | None = None,
) -> tuple[Indexer[Resource], Informer[T]]:
    """Make an informer with one handler, and hand out its store with indexes.

    Args:
        lister_watcher: Where objects come from.
        resource_type: Which kind.
        handler: Who is told about changes.
        resync_period: Every so many seconds the handler is told all objects again; 0 is never.
        indexers: Index functions by name.

    Returns:
        The store, and the informer: its ``run`` does the work, its ``has_synced`` says when the store is full.

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
    handler: ResourceEventHandler[T],
    resync_period: float = 0.0,
) -> tuple[Indexer[Resource], Informer[T]]:
    """Make an informer with one handler and no indexes of its own; see ``new_indexer_informer``."""
    return new_indexer_informer(lister_watcher, resource_type, handler=handler, resync_period=resync_period)
