"""Declares what lives as long as the program, such as an HTTP session or a database pool."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Generic, TypeVar, cast, final, overload

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.runtime.errors import LifespanError

T = TypeVar("T")


@final
class Lifespan(Generic[T]):
    """Something that a program opens before its first reconcile and closes after its last one; see ``lifespan``.

    Attributes:
        name: Name of the function, for errors.
    """

    def __init__(self, function: Callable[[], AbstractAsyncContextManager[T]], name: str) -> None:
        """Made by ``lifespan``."""
        self._function = function
        self.name = name

    @asynccontextmanager
    async def entered(self, end_timeout: float) -> AsyncGenerator[T]:
        """Enter a context manager of its own for one program.

        The end of the block exits it without an exception, whatever ends the program: code after a ``yield`` runs.

        Args:
            end_timeout: Seconds that the exit may take.

        Raises:
            LifespanError: If entering or exiting fails.
        """
        try:
            manager = self._function()
            value = await manager.__aenter__()
        except Exception as error:
            raise LifespanError(self.name, "begin", error) from error
        try:
            yield value
        finally:
            try:
                async with asyncio.timeout(end_timeout):
                    await manager.__aexit__(None, None, None)
            except Exception as error:
                raise LifespanError(self.name, "end", error) from error

    def __repr__(self) -> str:
        return f"<Lifespan {self.name}>"


@overload
def lifespan(function: Callable[[], AsyncIterator[T]], /) -> Lifespan[T]: ...
@overload
def lifespan(function: Callable[[], AbstractAsyncContextManager[T]], /) -> Lifespan[T]: ...
def lifespan(function: Callable[[], Any], /) -> Lifespan[Any]:
    """Declare the decorated function as the lifespan of a program.

    Give it to ``@dl.controller(..., lifespan=session)``. The manager enters it when it starts, on each replica, and
    exits it after the last reconcile; ``ctx.lifespan(session)`` returns its value. A harness and a simulation enter one
    for each program that they start.

    Args:
        function: Async generator function that yields once, or function that returns an async context manager; called
            without arguments, on the event loop, once for each program.

    Raises:
        InvalidArgumentError: If it cannot be called, needs arguments, or is a coroutine or plain generator function.
    """
    name = str(getattr(function, "__name__", None) or type(function).__name__)
    wanted = f"lifespan {name} must be an async generator function, or return an async context manager"
    if not callable(function):
        raise InvalidArgumentError(f"{wanted}; got a {type(cast('object', function)).__name__}. Decorate a function")
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        got = "a generator function" if inspect.isgeneratorfunction(function) else "a coroutine function"
        raise InvalidArgumentError(f"{wanted}; got {got}. Write `async def` and `yield` the value")
    try:
        inspect.signature(function).bind()
    except ValueError:  # built in, without a signature
        pass
    except TypeError as error:
        raise InvalidArgumentError(f"lifespan {name} must take no arguments: {error}") from None
    made = asynccontextmanager(function) if inspect.isasyncgenfunction(function) else functools.partial(function)
    return Lifespan(made, name)
