"""Calls that have to be awaited: a reconcile that forgets one has done nothing there, and is told so when it ends.

Python itself warns of such a call, once for each line of code, and cannot say in which reconcile.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Generator
from types import CodeType
from typing import Any, TypeAlias, TypeVar, final

from deltaloop._internal.tracebacks import place_in

T = TypeVar("T")

NotAwaited: TypeAlias = "dict[Call, None]"
"""The calls of one reconcile that nothing has awaited so far, in order."""


@final
class Call(Coroutine[Any, Any, Any]):
    """A coroutine of ours that knows whether it was begun: awaited, made a task, or closed."""

    __slots__ = ("_code", "_coroutine", "_instruction", "_not_awaited", "name")

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, Any], not_awaited: NotAwaited) -> None:
        """Keep who calls: the function two frames up."""
        self.name: str = name
        self._coroutine = coroutine
        self._not_awaited = not_awaited
        caller = sys._getframe(2)  # noqa: SLF001 - a traceback would cost more than the call
        self._code: CodeType = caller.f_code
        self._instruction: int = caller.f_lasti
        not_awaited[self] = None

    @property
    def place(self) -> str:
        """Where it was called, such as ``greeter.py:12 in reconcile``."""
        lines = self._code.co_lines()
        line = next((line for start, end, line in lines if start <= self._instruction < end), None)
        return place_in(self._code, line or self._code.co_firstlineno)

    def __await__(self) -> Generator[Any, Any, Any]:
        self._begin()
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """Go on with the call."""
        self._begin()
        return self._coroutine.send(value)

    def throw(self, *raised: Any) -> Any:
        """Raise something in the call."""
        self._begin()
        return self._coroutine.throw(*raised)

    def close(self) -> None:
        """Give the call up."""
        self._begin()
        self._coroutine.close()

    def _begin(self) -> None:
        self._not_awaited.pop(self, None)

    def __repr__(self) -> str:
        return f"<call of {self.name}>"


def names_calls(name: str) -> Callable[[type[T]], type[T]]:
    """Make a class whose coroutine functions are looked after; its objects have their calls in ``not_awaited``.

    Args:
        name: What authors call such an object, such as ``ctx.client``.
    """

    def decorate(cls: type[T]) -> type[T]:
        for method in dict.fromkeys(name for each in cls.__mro__ for name in vars(each)):  # in the order of the code
            function = getattr(cls, method)
            if not method.startswith("_") and inspect.iscoroutinefunction(function):
                setattr(cls, method, _looked_after(f"{name}.{method}", function))
        return cls

    return decorate


def _looked_after(name: str, function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Call]:
    @functools.wraps(function)
    def call(self: Any, *arguments: Any, **keywords: Any) -> Call:
        return Call(name, function(self, *arguments, **keywords), self.not_awaited)

    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(call)
    return call


def forgotten(not_awaited: NotAwaited) -> tuple[str, ...]:
    """Return the calls that nothing awaited, such as ``ctx.client.patch(...) at greeter.py:12``, and give them up."""
    calls = [*not_awaited]
    for call in calls:
        call.close()
    return tuple(f"{call.name}(...) at {call.place}" for call in calls)
