"""Informer factory for threads, which runs on a background loop.

with blocking.connect() as client, blocking.InformerFactory(client) as factory:
    pods = factory.informer(dl.kinds.POD)
    pods.add_event_handler(handler)
    factory.wait_for_sync(timeout=30)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Literal, TypeVar, Unpack, cast, final, overload

from deltaloop import cache
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import TypedKind
from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.client import Client
from deltaloop.blocking.handler_thread import HandlerThread, join_all
from deltaloop.blocking.informer import Informer, SharedInformer, joined
from deltaloop.blocking.queue import BlockingQueue
from deltaloop.blocking.scope import Scope
from deltaloop.cache import InformerOptions, InformerSelection, ListWatchClient, ObjectSelection
from deltaloop.workqueue import WorkQueue

T = TypeVar("T")
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
        """Return an informer. See ``deltaloop.InformerFactory.informer`` for arguments and sharing.

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
            timeout: Timeout in seconds for all informers together. None waits without a timeout.
            fail_fast: Whether to raise as soon as the server rejects one kind as forbidden (401, 403) or unknown (404).

        Raises:
            CacheSyncError: If the timeout expires or the server rejects a kind. It lists the affected kinds with their
                last errors and times.
            BackgroundLoopError: If the loop is not running, or is closed while waiting.
        """
        self._loop.run(self._factory.wait_for_sync(timeout, fail_fast=fail_fast))

    def open(self) -> None:
        """Start the informers that were requested so far. ``with`` calls this.

        You can call it repeatedly.

        Raises:
            InformerStoppedError: If the factory was closed before.
            BackgroundLoopError: If the loop is not running. Open the client first.
        """
        if self._owns_loop:
            self._loop.start()
        self._loop.enter(self._running)

    def close(self, *, timeout: float | None = None) -> None:
        """Stop all informers, and wait until their handlers have returned. ``with`` calls this.

        You can call it repeatedly. A handler can close the factory itself, which does not wait for that handler.

        Args:
            timeout: Timeout in seconds for the handlers. None waits without a timeout and logs the running handlers
                every 5 s.

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

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._factory.__aexit__(exc_type, exc, traceback)
        finally:
            self._end_handlers()  # the loop may end before this factory is closed, and cannot wait for threads
