"""One object that runs an informer factory on a background loop, for programs that block; here is no decision.

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
    """Makes, starts and stops informers for any number of threads; a context manager.

    Entering starts the informers asked for before; one that is asked for inside starts at once. Leaving stops all of
    them and waits until every handler has returned from the call that it is in.
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
        """Make a factory without informers.

        Args:
            client: Who asks the server; the factory does not close it. What ``cache.adapters`` make of a client that
                blocks (``from_kubernetes``, ``from_lightkube``) is as good as ``blocking.connect()``.
            namespace: Watch this namespace only; None means all. Kinds without namespaces are not affected.
            options: Options of all its informers, a transform among them.
            tweak: Changes the options of every list and watch; see ``ListWatch``.
            loop: Where it lives; by default that of a blocking client, else one of its own, which ``close`` ends.
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
        """The loop on which the informers live."""
        return self._loop

    def queue(self, queue: WorkQueue[K]) -> BlockingQueue[K]:
        """Return blocking access to a work queue, whose waiting takes place on this factory's loop."""
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
        """Return an informer; arguments and sharing are those of ``deltaloop.InformerFactory.informer``.

        Raises:
            UnknownResourceError: If no built-in kind has that name.
            IndexerConflictError: If an index of that name exists with another function.
            InformerStoppedError: If the factory was left: nothing would ever come.
            BackgroundLoopError: If the loop does not run: the client has to be entered first.
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
        """Return the informers of several namespaces as one.

        Raises:
            InvalidArgumentError: If there is no namespace, or the kind has none.
            BackgroundLoopError: If the loop does not run.
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
        """Use an informer for a while: it runs inside the block, and stops when its last user leaves.

        Leaving waits for the end of one that stops, and of its handlers.

        Raises:
            InformerStoppedError: If the factory was left.
            BackgroundLoopError: If the loop does not run.
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
        """Start what does not run yet, and wait until every cache holds its first full list.

        Args:
            timeout: Seconds for all of them together; None waits for ever.
            fail_fast: Whether to raise as soon as the server says of one kind that it is not allowed (401, 403) or does
                not exist (404).

        Raises:
            CacheSyncError: If that takes longer, or the server refuses; it names each kind that is refused or behind,
                its last error and since when.
            BackgroundLoopError: If the loop does not run, or is closed meanwhile.
        """
        self._loop.run(self._factory.wait_for_sync(timeout, fail_fast=fail_fast))

    def open(self) -> None:
        """Start the informers asked for so far; entering does it, too.

        Repeating it is fine.

        Raises:
            InformerStoppedError: If the factory was closed before.
            BackgroundLoopError: If the loop does not run: the client has to be entered first.
        """
        if self._owns_loop:
            self._loop.start()
        self._loop.enter(self._running)

    def close(self, *, timeout: float | None = None) -> None:
        """Stop all informers, and wait until every handler has returned; leaving does it, too.

        Repeating it is fine. A handler may close the factory itself; then its own end is not waited for.

        Args:
            timeout: Longest wait for handlers in seconds; None waits without end, with a warning every 5 s that names
                the handler.

        Raises:
            HandlerStillRunningError: If handlers have not returned in time; everything else is closed all the same.
            BackgroundLoopError: On the loop's own thread, or in a forked process.
        """
        try:
            self._loop.leave(self._running)
            join_all(self._end_handlers(), timeout)
        finally:
            if self._owns_loop:
                self._loop.close()

    def __repr__(self) -> str:
        return f"<blocking {self._factory!r}>"

    # On the loop, so that no lock is needed; `close` comes when nothing happens there any more.

    def _wrap(self, informer: cache.Informer[T]) -> Informer[T]:
        if informer not in self._informers:
            self._informers[informer] = Informer(informer, self._loop)
        return self._informers[informer]

    def _end_handlers(self) -> list[HandlerThread[Any]]:
        informers: list[SharedInformer[Any]] = [*self._informers.values(), *self._joined]
        return [thread for informer in informers for thread in informer.end_handlers()]


@final
class _Running:
    """A factory from its start to its end, on the loop; may be entered again, as the factory itself."""

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
            self._end_handlers()  # the loop may end before this factory is closed; nobody can be waited for here
