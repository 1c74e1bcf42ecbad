"""Client for threads, whose requests block. The asynchronous client runs on the background loop."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, contextmanager
from functools import update_wrapper
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, final

import deltaloop.client
from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.scope import Scope
from deltaloop.client import Client as AsyncClient
from deltaloop.client import ClientConfig, ClientOptions

P = ParamSpec("P")
T = TypeVar("T")

_END: Final[Any] = object()
_DEFAULTS: Final = ClientOptions()


def connect(
    *,
    kubeconfig: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    context: str | None = None,
    namespace: str | None = None,
    options: ClientOptions = _DEFAULTS,
    loop: BackgroundLoop | None = None,
) -> Client:
    """Create a client for the cluster that kubectl would use, without starting a thread or sending a request.

    Use it as ``with connect() as client:``.

    Args:
        kubeconfig: Path or content of a kubeconfig. The default is ``KUBECONFIG``, ``~/.kube/config`` or the pod's
            service account.
        context: Name of the context. The default is the current context.
        namespace: Default namespace. The default is the namespace of the context.
        options: Client options, such as rate limit, field manager, warnings and metrics.
        loop: Loop for the client. By default, the client creates a loop and stops it when it is closed.

    Raises:
        ConfigError: If the configuration is missing or invalid. The message contains the location and a fix.
    """
    made = deltaloop.client.connect(kubeconfig=kubeconfig, context=context, namespace=namespace, options=options)
    return Client(made, loop=loop)


class OnLoop(Protocol):
    """Interface of the client to which the methods belong."""

    @property
    def loop(self) -> BackgroundLoop: ...

    @property
    def asynchronous(self) -> AsyncClient: ...


def waits(
    verb: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[OnLoop, P], T]:
    """Return a method that waits for the result of ``verb``."""

    def waiting(client: OnLoop, /, *arguments: P.args, **keywords: P.kwargs) -> T:
        return client.loop.run(_call(verb, client, arguments, keywords))

    update_wrapper(waiting, verb)
    return waiting


def iterates(
    verb: Callable[Concatenate[AsyncClient, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[OnLoop, P], Generator[T, None, None]]:
    """Return a method whose generator waits for each item. Closing it closes the generator of ``verb``."""

    def iterating(client: OnLoop, /, *arguments: P.args, **keywords: P.kwargs) -> Generator[T, None, None]:
        found = aclosing(_call(verb, client, arguments, keywords))

        def items() -> Generator[T, None, None]:
            with _entered(client.loop, found) as given:
                yield from given

        return items()

    update_wrapper(iterating, verb)
    return iterating


def opens(
    verb: Callable[Concatenate[AsyncClient, P], AbstractAsyncContextManager[AsyncIterator[T]]],
) -> Callable[Concatenate[OnLoop, P], AbstractContextManager[Iterator[T]]]:
    """Return a method whose ``with`` block opens and closes a stream on the loop, with an iterator that waits."""

    def opening(client: OnLoop, /, *arguments: P.args, **keywords: P.kwargs) -> AbstractContextManager[Iterator[T]]:
        return _entered(client.loop, _call(verb, client, arguments, keywords))

    update_wrapper(opening, verb)
    return opening


def _call(verb: Callable[..., T], client: OnLoop, arguments: Any, keywords: Any) -> T:
    called: Callable[..., T] = getattr(client.asynchronous, verb.__name__)
    return called(*arguments, **keywords)


@contextmanager
def _entered(loop: BackgroundLoop, stream: AbstractAsyncContextManager[AsyncIterator[T]]) -> Generator[Iterator[T]]:
    opened = loop.enter(stream)
    try:
        yield _Waiting(loop, opened)
    finally:
        loop.leave(stream)


@final
class _Waiting(Generic[T]):
    """Iterator that waits. An interruption cancels the read, but a watch or log loses no items."""

    def __init__(self, loop: BackgroundLoop, items: AsyncIterator[T]) -> None:
        self._loop = loop
        self._items = items

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        item = self._loop.run(self._next())
        if item is _END:
            raise StopIteration
        return item

    async def _next(self) -> T:
        return await anext(self._items, _END)


@final
class Client(Scope):
    """Client of one API server for threads.

    ``with`` closes its connections.

    The methods are those of ``deltaloop.Client``. They also raise ``BackgroundLoopError`` after ``close``, in a forked
    process and on the background loop's own thread. An interruption such as Ctrl-C cancels the request, but the server
    may have executed a canceled write.

    ``timeout`` is in seconds and applies to a whole call, including its retries. None applies the client's limit (30
    s).
    """

    def __init__(self, client: AsyncClient, *, loop: BackgroundLoop | None = None) -> None:
        """Create a client that is not open yet.

        Args:
            client: Asynchronous client, which is closed together with this client.
            loop: Loop for the client. By default, the client creates a loop, which ``close`` stops.
        """
        self._client = client
        self._owns_loop = loop is None
        self._loop = loop if loop is not None else BackgroundLoop()

    @property
    def loop(self) -> BackgroundLoop:
        """Loop of the client.

        Factories for this client use it.
        """
        return self._loop

    @property
    def asynchronous(self) -> AsyncClient:
        """Asynchronous client, for coroutines on ``loop``."""
        return self._client

    @property
    def config(self) -> ClientConfig:
        """Client configuration.

        Its ``repr`` contains no secrets.
        """
        return self._client.config

    @property
    def namespace(self) -> str:
        """Default namespace for methods that access one object."""
        return self._client.namespace

    def open(self) -> None:
        """Start the loop, unless it was passed in, and open the client.

        ``with`` calls this.

        You can call it repeatedly.
        """
        if self._owns_loop:
            self._loop.start()
        self._loop.enter(self._client)

    def close(self) -> None:
        """Close all connections, and the loop unless it was passed in.

        A second call does nothing.

        Threads that wait for a response get an error. Close factories first.
        """
        try:
            self._loop.leave(self._client)
        finally:
            if self._owns_loop:
                self._loop.close()

    resource: Final = waits(AsyncClient.resource)
    resources: Final = waits(AsyncClient.resources)
    get: Final = waits(AsyncClient.get)
    find: Final = waits(AsyncClient.find)
    list: Final = waits(AsyncClient.list)
    list_all: Final = waits(AsyncClient.list_all)
    iter_list: Final = iterates(AsyncClient.iter_list)
    watch: Final = opens(AsyncClient.watch)
    wait_for: Final = waits(AsyncClient.wait_for)
    create: Final = waits(AsyncClient.create)
    update: Final = waits(AsyncClient.update)
    update_status: Final = waits(AsyncClient.update_status)
    patch: Final = waits(AsyncClient.patch)
    apply: Final = waits(AsyncClient.apply)
    delete: Final = waits(AsyncClient.delete)
    delete_collection: Final = waits(AsyncClient.delete_collection)
    create_or_update: Final = waits(AsyncClient.create_or_update)
    edit: Final = waits(AsyncClient.edit)
    add_finalizer: Final = waits(AsyncClient.add_finalizer)
    remove_finalizer: Final = waits(AsyncClient.remove_finalizer)
    get_scale: Final = waits(AsyncClient.get_scale)
    scale: Final = waits(AsyncClient.scale)
    evict: Final = waits(AsyncClient.evict)
    create_subresource: Final = waits(AsyncClient.create_subresource)
    logs: Final = opens(AsyncClient.logs)

    def __repr__(self) -> str:
        return f"<blocking {self._client!r}>"
