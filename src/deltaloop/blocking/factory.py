"""Informer factory for threads, which runs on a background loop.

Reads (``lister``) do not use the loop, because caches are thread-safe. All other calls run on the loop.

with blocking.connect() as client, blocking.InformerFactory(client) as factory:
    pods = factory.informer(dl.kinds.POD)
    pods.add_event_handler(handler)
    factory.wait_for_sync(timeout=30)
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Unpack, cast, final, overload

from deltaloop import cache
from deltaloop._internal.fork_safety import fork_safe
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType, TypedKind
from deltaloop.api.shard_selector import ShardSelector
from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.client import Client
from deltaloop.blocking.handler_thread import HandlerThread, join_all
from deltaloop.blocking.queue import BlockingQueue
from deltaloop.blocking.scope import Scope
from deltaloop.cache import (
    ConsistencyReport,
    Freshness,
    HandlerOptions,
    IndexFunc,
    InformerOptions,
    InformerSelection,
    Lister,
    ListWatchClient,
    MultiNamespaceInformer,
    ObjectSelection,
    ReadableIndexer,
    ReceivedObjectHandler,
    ReflectorStatistics,
    ResourceEventHandler,
    wait_for_cache_sync,
)
from deltaloop.cache.handlers import handler_name
from deltaloop.cache.multi_namespace import JoinedIndexer
from deltaloop.workqueue import WorkQueue

T = TypeVar("T")
R = TypeVar("R")

_AnyInformer: TypeAlias = cache.Informer[T] | MultiNamespaceInformer[T]


@final
class Registration:
    """Registration of a handler with an informer.

    Thread-safe.
    """

    def __init__(self, registration: cache.Registration, loop: BackgroundLoop) -> None:
        self._registration = registration
        self._loop = loop

    @property
    def name(self) -> str:
        """Name of the handler in the log."""
        return self._registration.name

    @property
    def has_synced(self) -> bool:
        """Whether the handler has processed all objects of the initial list, including failures."""
        self._loop.check_process()
        return self._registration.has_synced

    @property
    def pending(self) -> int:
        """Number of queued notifications, without the current one."""
        self._loop.check_process()
        return self._registration.pending

    @property
    def failures(self) -> int:
        """Number of failed deliveries, in which the handler raised or the object did not match its class."""
        self._loop.check_process()
        return self._registration.failures

    def wait_for_sync(self, timeout: float | None = 30.0) -> None:
        """Wait until ``has_synced``.

        Do not call it in the handler itself.

        ``timeout`` is in seconds, and None means no timeout.

        Raises:
            TimeoutError: If the timeout expires.
            BackgroundLoopError: If the loop is not running, or is closed while waiting.
        """
        if not self._loop.run(wait_for_cache_sync(self._registration, timeout=timeout)):
            raise TimeoutError(f"the handler {self.name} did not receive the initial list within {timeout:g} s")

    def __repr__(self) -> str:
        return f"<Registration {self.name}: {self._registration.pending} pending, {self._registration.failures} failed>"


class SharedInformer(Generic[T]):
    """Informer of one kind in one, several or all namespaces, created by ``InformerFactory``.

    Thread-safe.
    """

    def __init__(self, informer: _AnyInformer[T], indexer: ReadableIndexer, loop: BackgroundLoop) -> None:
        self._shared = informer
        self._indexer = _ProcessChecked(indexer, loop)
        self._loop = loop
        self._lock = fork_safe(threading.Lock())
        self._threads: dict[cache.Registration, HandlerThread[T]] = {}

    @property
    def name(self) -> str:
        """Description of the cached objects, as in the log."""
        return self._shared.name

    @property
    def resource_type(self) -> ResourceType[T]:
        """Kind of the cached objects."""
        return self._shared.resource_type

    @property
    def has_synced(self) -> bool:
        """Whether the cache contains the first full list.

        Handlers can be behind the cache. Check their registrations.
        """
        self._loop.check_process()
        return self._shared.has_synced

    @property
    def stopped(self) -> bool:
        """Whether the informer has ended.

        The cache is still readable but not updated.
        """
        self._loop.check_process()
        return self._shared.stopped

    def lister(self) -> Lister[T]:
        """Return a thread-safe reader of the cache.

        It works after the informer's end, but not in a forked process.
        """
        return Lister(self._indexer, self.resource_type)

    def add_indexers(self, indexers: Mapping[str, IndexFunc[Resource]]) -> None:
        """Add indexes, which include the cached objects immediately.

        Raises:
            IndexerConflictError: If an index with the same name has a different function.
            BackgroundLoopError: If the loop is not running.
        """
        self._on_loop(lambda: self._shared.add_indexers(indexers))

    def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Wait until the cache contains the first full list.

        See ``deltaloop.Informer.wait_for_sync``.

        ``timeout`` is in seconds, and None means no timeout.

        Raises:
            CacheSyncError: If the timeout expires, the server rejects the request, or the informer stops.
            BackgroundLoopError: If the loop is not running, or is closed while waiting.
        """
        self._loop.run(self._shared.wait_for_sync(timeout, fail_fast=fail_fast))

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T] | ReceivedObjectHandler,
        *,
        name: str = "",
        options: HandlerOptions | None = None,
    ) -> Registration:
        """Add a handler for all cached objects and all later changes.

        The handler runs in a separate thread and gets one notification at a time, in order. If it blocks, only its own
        notifications wait (with ``BufferPolicy.BOUNDED``, also the informer). If it raises, the exception is logged and
        counted, and the next notification follows.

        Args:
            handler: Handler to call. The coroutines of an ``async def`` handler run on the loop and must not block.
            name: Name in the log. The default is the name of its class or functions.
            options: Options for the resync period and the buffer.

        Raises:
            InformerStoppedError: If the informer has stopped.
            BackgroundLoopError: If the loop is not running.
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
        """Remove a handler, and wait until it has returned from its current call.

        Its queued notifications are dropped. Unknown registrations are ignored. A handler can remove itself without
        waiting.

        Args:
            registration: Result of ``add_event_handler``.
            timeout: Timeout in seconds, or None. A running handler is logged every 5 s.

        Raises:
            HandlerStillRunningError: If it has not returned in time. It is removed nevertheless.
            BackgroundLoopError: If the loop is not running.
        """
        inner = registration._registration  # noqa: SLF001 - same module
        self._on_loop(lambda: self._shared.remove_event_handler(inner))
        with self._lock:
            thread = self._threads.pop(inner, None)
        if thread is not None:
            thread.end()
            join_all([thread], timeout)

    def end_handlers(self) -> builtins.list[HandlerThread[T]]:
        """Stop the handler threads after their current calls, and return them so that the factory can join them."""
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
    """Informer of one kind in one or all namespaces, which can also report its freshness."""

    def __init__(self, informer: cache.Informer[T], loop: BackgroundLoop) -> None:
        super().__init__(informer, informer.indexer, loop)
        self._informer = informer

    @property
    def resource_version(self) -> str:
        """Resource version of the cache, or an empty string before the first list."""
        self._loop.check_process()
        return self._informer.resource_version

    def freshness(self) -> Freshness:
        """Return how current the cache is.

        Its times are those of ``time.monotonic``.
        """
        return self._on_loop(self._informer.freshness)

    def statistics(self) -> ReflectorStatistics:
        """Return the counts of lists, watches and failures."""
        return self._on_loop(self._informer.statistics)

    def wait_for_resource_version(self, resource_version: str, *, timeout: float | None = 30.0) -> None:
        """Wait until the cache contains a resource version, for example that of your own write.

        ``timeout`` is in seconds, and None means no timeout.

        Raises:
            NotFreshError: If the timeout expires.
            InformerStoppedError: If the informer stops first.
            BackgroundLoopError: If the loop is not running, or is closed while waiting.
        """
        self._loop.run(self._informer.wait_for_resource_version(resource_version, timeout=timeout))

    def check_consistency(self, *, timeout: float | None = 30.0) -> ConsistencyReport:
        """List at the exact version of the cache, and compare.

        See ``deltaloop.Informer.check_consistency``.

        ``timeout`` is in seconds, and None means no timeout.

        Raises:
            NotFreshError: If the cache keeps changing.
            ApiError, TransportError: If the server does not respond, or no longer has that version.
        """
        return self._loop.run(self._informer.check_consistency(timeout=timeout))


@final
class _ProcessChecked:
    """Store that raises in a forked process, where its lock may be held permanently."""

    def __init__(self, indexer: ReadableIndexer, loop: BackgroundLoop) -> None:
        self._indexer = indexer
        self._loop = loop

    @property
    def shard(self) -> ShardSelector | None:
        return self._indexer.shard

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
    indexers = {namespace: each.indexer for namespace, each in informer.informers.items()}
    return SharedInformer(informer, JoinedIndexer(indexers), loop)


K = TypeVar("K", bound=Hashable)


@final
class InformerFactory(Scope):
    """Factory that creates, starts and stops informers for threads, as a context manager.

    On entry, it starts the informers that were requested before. Informers that you request inside the block start
    immediately. On exit, it stops all informers and waits until their handlers have returned.
    """

    def __init__(
        self,
        client: Client | ListWatchClient,
        *,
        namespace: str | None = None,
        options: InformerOptions | None = None,
        tweak: Callable[[ListOptions], ListOptions] | None = None,
        loop: BackgroundLoop | None = None,
    ) -> None:
        """Create a factory without informers.

        Args:
            client: Client for lists and watches, which the factory does not close. You can also pass clients from
                ``cache.adapters`` (``from_kubernetes``, ``from_lightkube``).
            namespace: Namespace to watch. None watches all namespaces. Cluster-scoped kinds are not affected.
            options: Options for all informers, for example a transform.
            tweak: Function that changes the options of each list and watch. See ``ListWatch``.
            loop: Loop for the informers. By default, the loop of a blocking client, or otherwise a new loop that
                ``close`` stops.
        """
        if isinstance(client, Client):
            loop, client = loop or client.loop, cast("ListWatchClient", client.asynchronous)
        self._owns_loop = loop is None
        self._loop = loop if loop is not None else BackgroundLoop()
        self._factory = cache.InformerFactory(client, namespace=namespace, options=options, tweak=tweak)
        self._informers: dict[cache.Informer[Any], Informer[Any]] = {}
        self._joined: list[SharedInformer[Any]] = []
        self._running = _Running(self._factory, self._end_handlers)

    @property
    def loop(self) -> BackgroundLoop:
        """Loop of the informers."""
        return self._loop

    def queue(self, queue: WorkQueue[K]) -> BlockingQueue[K]:
        """Return blocking access to a work queue, which waits on this factory's loop."""
        return BlockingQueue(queue, loop=self._loop)

    @overload
    def informer(
        self,
        resource_type: TypedKind[T],
        *,
        metadata_only: Literal[False] = False,
        **selection: Unpack[InformerSelection],
    ) -> Informer[T]: ...
    @overload
    def informer(
        self, resource_type: str, *, metadata_only: bool = ..., **selection: Unpack[InformerSelection]
    ) -> Informer[Resource]: ...
    @overload
    def informer(
        self, resource_type: TypedKind[Any], *, metadata_only: Literal[True], **selection: Unpack[InformerSelection]
    ) -> Informer[Resource]: ...
    def informer(
        self,
        resource_type: TypedKind[Any] | str,
        *,
        metadata_only: bool = False,
        **selection: Unpack[InformerSelection],
    ) -> Informer[Any]:
        """Return an informer.

        See ``deltaloop.InformerFactory.informer`` for arguments and sharing.

        Raises:
            UnknownResourceError: If no built-in kind has that name.
            IndexerConflictError: If an index with the same name has a different function.
            InformerStoppedError: If the factory was closed.
            BackgroundLoopError: If the loop is not running. Open the client first.
        """

        async def ask() -> Informer[Any]:
            ask_for: Callable[..., cache.Informer[Any]] = self._factory.informer
            return self._wrap(ask_for(resource_type, metadata_only=metadata_only, **selection))

        return self._loop.run(ask())

    @overload
    def multi_namespace_informer(
        self,
        resource_type: TypedKind[T],
        namespaces: Iterable[str],
        *,
        metadata_only: Literal[False] = False,
        **selection: Unpack[ObjectSelection],
    ) -> SharedInformer[T]: ...
    @overload
    def multi_namespace_informer(
        self,
        resource_type: TypedKind[Any],
        namespaces: Iterable[str],
        *,
        metadata_only: Literal[True],
        **selection: Unpack[ObjectSelection],
    ) -> SharedInformer[Resource]: ...
    def multi_namespace_informer(
        self,
        resource_type: TypedKind[Any],
        namespaces: Iterable[str],
        *,
        metadata_only: bool = False,
        **selection: Unpack[ObjectSelection],
    ) -> SharedInformer[Any]:
        """Return one informer for several namespaces.

        Raises:
            InvalidArgumentError: If ``namespaces`` is empty, or the kind is cluster-scoped.
            BackgroundLoopError: If the loop is not running.
        """

        async def ask() -> SharedInformer[Any]:
            ask_for: Callable[..., cache.MultiNamespaceInformer[Any]] = self._factory.multi_namespace_informer
            several = ask_for(resource_type, namespaces, metadata_only=metadata_only, **selection)
            informer = joined(several, self._loop)
            self._joined.append(informer)
            return informer

        return self._loop.run(ask())

    @overload
    def use(
        self,
        resource_type: TypedKind[T],
        *,
        metadata_only: Literal[False] = False,
        **selection: Unpack[InformerSelection],
    ) -> AbstractContextManager[Informer[T]]: ...
    @overload
    def use(
        self, resource_type: str, *, metadata_only: bool = ..., **selection: Unpack[InformerSelection]
    ) -> AbstractContextManager[Informer[Resource]]: ...
    @overload
    def use(
        self, resource_type: TypedKind[Any], *, metadata_only: Literal[True], **selection: Unpack[InformerSelection]
    ) -> AbstractContextManager[Informer[Resource]]: ...
    def use(
        self,
        resource_type: TypedKind[Any] | str,
        *,
        metadata_only: bool = False,
        **selection: Unpack[InformerSelection],
    ) -> AbstractContextManager[Informer[Any]]:
        """Run an informer inside the block, and stop it when its last user exits.

        The last exit waits for the end of the informer and of its handlers.

        Raises:
            InformerStoppedError: If the factory was closed.
            BackgroundLoopError: If the loop is not running.
        """
        ask_for: Callable[..., AbstractAsyncContextManager[cache.Informer[Any]]] = self._factory.use
        return self._use(ask_for(resource_type, metadata_only=metadata_only, **selection))

    @contextmanager
    def _use(
        self, while_used: AbstractAsyncContextManager[cache.Informer[Any]]
    ) -> Generator[Informer[Any], None, None]:
        found = self._loop.enter(while_used)

        async def wrap() -> Informer[Any]:
            return self._wrap(found)

        async def forget() -> None:
            self._informers.pop(found, None)

        informer = self._loop.run(wrap())
        try:
            yield informer
        finally:
            self._loop.leave(while_used)
            if found.stopped:
                join_all(informer.end_handlers(), None)
                self._loop.run(forget())

    def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Start the requested informers, and wait until each cache contains its first full list.

        Args:
            timeout: Timeout in seconds for all informers together, or None.
            fail_fast: Whether to raise as soon as the server rejects one kind as forbidden (401, 403) or unknown (404).

        Raises:
            CacheSyncError: If the timeout expires or the server rejects a kind. It lists the affected kinds with their
                last errors and times.
            BackgroundLoopError: If the loop is not running, or is closed while waiting.
        """
        self._loop.run(self._factory.wait_for_sync(timeout, fail_fast=fail_fast))

    def open(self) -> None:
        """Start the informers that were requested so far.

        ``with`` calls this.

        You can call it repeatedly.

        Raises:
            InformerStoppedError: If the factory was closed before.
            BackgroundLoopError: If the loop is not running. Open the client first.
        """
        if self._owns_loop:
            self._loop.start()
        self._loop.enter(self._running)

    def close(self, *, timeout: float | None = None) -> None:
        """Stop all informers, and wait until their handlers have returned.

        ``with`` calls this.

        You can call it repeatedly. A handler can close the factory itself, which does not wait for that handler.

        Args:
            timeout: Timeout in seconds for the handlers, or None. Running handlers are logged every 5 s.

        Raises:
            HandlerStillRunningError: If handlers have not returned in time. The factory is closed nevertheless.
            BackgroundLoopError: If it is called on the loop's thread, or in a forked process.
        """
        try:
            self._loop.leave(self._running)
            join_all(self._end_handlers(), timeout)
        finally:
            if self._owns_loop:
                self._loop.close()

    def __repr__(self) -> str:
        return f"<blocking {self._factory!r}>"

    # This runs on the loop, so it needs no lock. `close` runs after the loop's last use of it.

    def _wrap(self, informer: cache.Informer[T]) -> Informer[T]:
        if informer not in self._informers:
            self._informers[informer] = Informer(informer, self._loop)
        return self._informers[informer]

    def _end_handlers(self) -> list[HandlerThread[Any]]:
        informers: list[SharedInformer[Any]] = [*self._informers.values(), *self._joined]
        return [thread for informer in informers for thread in informer.end_handlers()]


@final
class _Running:
    """Running factory as an async context manager on the loop, which can be entered again."""

    def __init__(self, factory: cache.InformerFactory, end_handlers: Callable[[], object]) -> None:
        self._factory = factory
        self._end_handlers = end_handlers

    async def __aenter__(self) -> None:
        await self._factory.__aenter__()

    async def __aexit__(self, *exc_info: object) -> None:
        try:
            await self._factory.__aexit__(*exc_info)
        finally:
            self._end_handlers()  # the loop may end before this factory is closed, and cannot wait for threads
