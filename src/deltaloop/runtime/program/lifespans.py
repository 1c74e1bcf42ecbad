"""Resources that are open as long as the program runs, such as an HTTP session or a database pool."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar, cast, final, overload

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.runtime.program.errors import LifespanError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[[], Any])

STUBS: Final[ContextVar[bool]] = ContextVar("deltaloop_lifespan_stubs", default=False)
"""True in a plan: programs of this context enter the stubs of their lifespans."""


@final
class Lifespan(Generic[T]):
    """Resource that a program opens before its first reconcile and closes after its last reconcile; see ``lifespan``.

    Attributes:
        name: Name of the function, for errors.
    """

    def __init__(self, function: Callable[[], AbstractAsyncContextManager[T]], name: str) -> None:
        self._function = function
        self._stub: Callable[[], AbstractAsyncContextManager[Any]] | None = None
        self.name = name

    def stub(self, function: F) -> F:
        """Declare the decorated function as the stub of this lifespan, which ``deltaloop plan`` enters instead.

        A plan denies network access, so a lifespan that connects to another system needs a stub. Its value must have
        the methods that the reconciles call::

            @session.stub
            async def recorded_prices() -> AsyncIterator[Prices]:
                yield FixedPrices({"eu-1": 3})

        Args:
            function: Function as for ``lifespan``.

        Raises:
            InvalidArgumentError: If ``lifespan`` rejects the function.
        """
        self._stub = lifespan(function)._function  # noqa: SLF001 - same class
        return function

    @asynccontextmanager
    async def entered(self, end_timeout: float) -> AsyncGenerator[T]:
        """Enter a new context manager for one program.

        The context manager always exits without an exception, so that the code after ``yield`` runs.

        Args:
            end_timeout: Time limit for the exit in seconds.

        Raises:
            LifespanError: If entering or exiting fails.
        """
        try:
            manager = self._stub() if self._stub is not None and STUBS.get() else self._function()
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

    Pass it as ``@dl.controller(..., lifespan=session)``. On each replica, the manager enters it at the start and exits
    it after the last reconcile. ``ctx.lifespan(session)`` returns its value. A harness or a simulation enters it once
    for each program that it starts.

    Args:
        function: Async generator function that yields once, or function that returns an async context manager. It is
            called without arguments on the event loop, once for each program.

    Raises:
        InvalidArgumentError: If the function is not callable, requires arguments, or is a coroutine or plain generator
            function.
    """
    name = str(getattr(function, "__name__", None) or type(function).__name__)
    lifespan = f"lifespan {name}"
    wanted = "must be an async generator function, or return an async context manager"
    if not callable(function):
        raise InvalidArgumentError(f"{wanted}, got {type(cast('object', function)).__name__}.", argument=lifespan)
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        got = "a generator function" if inspect.isgeneratorfunction(function) else "a coroutine function"
        raise InvalidArgumentError(f"{wanted}, got {got}. Write `async def` and `yield`.", argument=lifespan)
    try:
        inspect.signature(function).bind()
    except ValueError:  # built-in function without a signature
        pass
    except TypeError as error:
        raise InvalidArgumentError(f"must take no arguments: {error}", argument=lifespan) from None
    made = asynccontextmanager(function) if inspect.isasyncgenfunction(function) else functools.partial(function)
    return Lifespan(made, name)
