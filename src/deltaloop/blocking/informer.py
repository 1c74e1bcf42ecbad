"""Informers as threads use them. The informers themselves live on the background loop; here is no decision.

Reading (``lister``) takes no turn of the loop: caches are safe to read from any thread. Everything else is one.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeAlias, TypeVar, final

from deltaloop import cache
from deltaloop._internal.fork_safety import fork_safe
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.handler_thread import HandlerThread, join_all
from deltaloop.cache import (
    ConsistencyReport,
    Freshness,
    HandlerOptions,
    IndexFunc,
    Lister,
    MultiNamespaceInformer,
    ReadableIndexer,
    ReceivedObjectHandler,
    ReflectorStatistics,
    ResourceEventHandler,
    wait_for_cache_sync,
)
from deltaloop.cache.handlers import handler_name
from deltaloop.cache.multi_namespace import JoinedIndexer

T = TypeVar("T")
R = TypeVar("R")

_AnyInformer: TypeAlias = cache.Informer[T] | MultiNamespaceInformer[T]


@final
class Registration:
    """A handler's place at an informer, from ``add_event_handler`` until it is removed; from any thread."""

    def __init__(self, registration: cache.Registration, loop: BackgroundLoop) -> None:
        """Made by ``SharedInformer.add_event_handler``."""
        self._registration = registration
        self._loop = loop

    @property
    def name(self) -> str:
        """The handler's name, as in the log."""
        return self._registration.name

    @property
    def has_synced(self) -> bool:
        """Whether the handler has returned from, or failed at, every object of the initial list."""
        self._loop.check_process()
        return self._registration.has_synced

    @property
    def pending(self) -> int:
        """Notifications that wait for the handler, without the one that it is at."""
        self._loop.check_process()
        return self._registration.pending

    @property
    def failures(self) -> int:
        """Deliveries that failed: the handler raised, or the object does not fit its class."""
        self._loop.check_process()
        return self._registration.failures

    def wait_for_sync(self, timeout: float | None = 30.0) -> None:
        """Wait until ``has_synced``; not in the handler itself.

        ``timeout`` is in seconds; None waits for ever.

        Raises:
            TimeoutError: If that takes longer.
            BackgroundLoopError: If the loop does not run, or is closed meanwhile.
        """
        if not self._loop.run(wait_for_cache_sync(self._registration, timeout=timeout)):
            raise TimeoutError(f"the handler {self.name} has not seen the initial list within {timeout:g} s")

    def __repr__(self) -> str:
        return f"<Registration {self.name}: {self._registration.pending} pending, {self._registration.failures} failed>"


class SharedInformer(Generic[T]):
    """The informer of one kind, in one namespace, all or several; made by ``InformerFactory``, used by any thread."""

    def __init__(self, informer: _AnyInformer[T], indexer: ReadableIndexer, loop: BackgroundLoop) -> None:
        """Take the informer, where its objects are read from, and the loop on which it lives."""
        self._shared = informer
        self._indexer = _ProcessChecked(indexer, loop)
        self._loop = loop
        self._lock = fork_safe(threading.Lock())
        self._threads: dict[cache.Registration, HandlerThread[T]] = {}

    @property
    def name(self) -> str:
        """What is cached, as in the log."""
        return self._shared.name

    @property
    def resource_type(self) -> ResourceType[T]:
        """Which kind."""
        return self._shared.resource_type

    @property
    def has_synced(self) -> bool:
        """Whether the first full list is in the cache.

        Handlers may be behind: ask their registrations.
        """
        self._loop.check_process()
        return self._shared.has_synced

    @property
    def stopped(self) -> bool:
        """Whether it has ended; the cache stays readable and is no longer kept up."""
        self._loop.check_process()
        return self._shared.stopped

    def lister(self) -> Lister[T]:
        """Return a reader of the cache, for any thread; readable after the end, too, and never in a forked process."""
        return Lister(self._indexer, self.resource_type)

    def add_indexers(self, indexers: Mapping[str, IndexFunc[Resource]]) -> None:
        """Add indexes at any time; what is cached is filed under them at once.

        Raises:
            IndexerConflictError: If a name is taken by another function.
            BackgroundLoopError: If the loop does not run.
        """
        self._on_loop(lambda: self._shared.add_indexers(indexers))

    def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Wait until the first full list is in the cache; as ``deltaloop.Informer.wait_for_sync``.

        ``timeout`` is in seconds; None waits for ever.

        Raises:
            CacheSyncError: If that takes longer, the server refuses, or the informer stops.
            BackgroundLoopError: If the loop does not run, or is closed meanwhile.
        """
        self._loop.run(self._shared.wait_for_sync(timeout, fail_fast=fail_fast))

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T] | ReceivedObjectHandler,
        *,
        name: str = "",
        options: HandlerOptions | None = None,
    ) -> Registration:
        """Tell a handler about every change from now on, and first about every object that is there.

        The handler is called in a thread of its own, one notification after the other, in order. It may block: only its
        own notifications wait (with ``BufferPolicy.BOUNDED``, the informer does, too). What it raises is logged and
        counted, and costs that notification only.

        Args:
            handler: Whom to tell. What an ``async def`` one returns is awaited on the loop, and must not block.
            name: What to call it in the log; its class or functions by default.
            options: Its resync period, and how notifications wait while it is busy.

        Raises:
            InformerStoppedError: If the informer has stopped: nothing would ever come.
            BackgroundLoopError: If the loop does not run.
        """
        name = name or handler_name(handler)

        def add() -> cache.Registration:
            thread = HandlerThread(handler, name=name)
            registration = self._shared.add_event_handler(thread, name=name, options=options)
            with self._lock:
                self._threads[registration] = thread
            thread.start()
            return registration

        return Registration(self._on_loop(add), self._loop)

    def remove_event_handler(self, registration: Registration, *, timeout: float | None = None) -> None:
        """Tell a handler nothing more, and wait until it has returned from the call that it is in.

        What waits for it is dropped. Removing twice, or what belongs to another informer, does nothing. A handler may
        remove itself; that does not wait.

        Args:
            registration: What ``add_event_handler`` returned.
            timeout: Longest wait in seconds; None waits without end, with a warning every 5 s.

        Raises:
            HandlerStillRunningError: If it has not returned in time; it is removed all the same.
            BackgroundLoopError: If the loop does not run.
        """
        inner = registration._registration  # noqa: SLF001 - it is one of us
        self._on_loop(lambda: self._shared.remove_event_handler(inner))
        with self._lock:
            thread = self._threads.pop(inner, None)
        if thread is not None:
            thread.end()
            join_all([thread], timeout)

    def end_handlers(self) -> builtins.list[HandlerThread[T]]:
        """Tell all threads to end when their handlers return, and hand them out to be joined; for the factory."""
        with self._lock:
            threads = builtins.list(self._threads.values())
        for thread in threads:
            thread.end()
        return threads

    def _on_loop(self, function: Callable[[], R]) -> R:
        async def call() -> R:
            return function()

        return self._loop.run(call())

    def __repr__(self) -> str:
        return f"<blocking {self._shared!r}>"


@final
class Informer(SharedInformer[T]):
    """The informer of one kind in one namespace or all, with what it can tell about its freshness."""

    def __init__(self, informer: cache.Informer[T], loop: BackgroundLoop) -> None:
        """Take the informer and the loop on which it lives."""
        super().__init__(informer, informer.indexer, loop)
        self._informer = informer

    @property
    def resource_version(self) -> str:
        """The version that the cache has come to; "" before the first list."""
        self._loop.check_process()
        return self._informer.resource_version

    def freshness(self) -> Freshness:
        """Return how current the cache is; its times are those of ``time.monotonic``."""
        return self._on_loop(self._informer.freshness)

    def statistics(self) -> ReflectorStatistics:
        """Return what was listed, watched and failed so far."""
        return self._on_loop(self._informer.statistics)

    def wait_for_resource_version(self, resource_version: str, *, timeout: float | None = 30.0) -> None:
        """Wait until the cache holds everything up to a resource version, such as that of a write of one's own.

        ``timeout`` is in seconds; None waits for ever.

        Raises:
            NotFreshError: If that takes longer.
            InformerStoppedError: If the informer stops before.
            BackgroundLoopError: If the loop does not run, or is closed meanwhile.
        """
        self._loop.run(self._informer.wait_for_resource_version(resource_version, timeout=timeout))

    def check_consistency(self, *, timeout: float | None = 30.0) -> ConsistencyReport:
        """List at exactly the version of the cache and compare; as ``deltaloop.Informer.check_consistency``.

        ``timeout`` is in seconds; None waits for ever.

        Raises:
            NotFreshError: If something always is on its way into the cache.
            ApiError, TransportError: If the server does not answer, or does not have that version any more.
        """
        return self._loop.run(self._informer.check_consistency(timeout=timeout))


@final
class _ProcessChecked:
    """Reads a store after a look at the process: in a fork its lock may be held by a thread that is not there."""

    def __init__(self, indexer: ReadableIndexer, loop: BackgroundLoop) -> None:
        self._indexer = indexer
        self._loop = loop

    def get_by_key(self, key: str) -> Resource | None:
        self._loop.check_process()
        return self._indexer.get_by_key(key)

    def list(self) -> builtins.list[Resource]:
        self._loop.check_process()
        return self._indexer.list()

    def by_index(self, name: str, value: str) -> builtins.list[Resource]:
        self._loop.check_process()
        return self._indexer.by_index(name, value)

    def __len__(self) -> int:
        self._loop.check_process()
        return len(self._indexer)


def joined(informer: MultiNamespaceInformer[T], loop: BackgroundLoop) -> SharedInformer[T]:
    """Wrap the informers of several namespaces."""
    indexers = {namespace: each.indexer for namespace, each in informer.informers.items()}
    return SharedInformer(informer, JoinedIndexer(indexers), loop)
