"""Derive blocking methods from asynchronous ones, with the same names, parameters, docstrings and overloads.

Type checkers understand all three functions, including overloads and type variables
(``tests/blocking/typed_verbs.py``).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, contextmanager
from functools import update_wrapper
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, final

from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.client import Client as AsyncClient

P = ParamSpec("P")
T = TypeVar("T")

_END: Final[Any] = object()


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
