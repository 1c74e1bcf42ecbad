"""Detection of coroutine calls that a reconcile forgot to await."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import CodeType, CoroutineType
from typing import Any, Final, TypeAlias, TypeVar

from deltaloop._internal.tracebacks import place_in

T = TypeVar("T")

Call: TypeAlias = "CoroutineType[Any, Any, Any]"
_TIDIED_EVERY: Final = 256
NotAwaited: TypeAlias = dict[Any, tuple[str, CodeType, int]]
"""Calls of one reconcile that may not have been awaited, with name and call site, in order."""


def names_calls(name: str) -> Callable[[type[T]], type[T]]:
    """Decorate a class so that its coroutine functions record their calls."""

    def decorate(cls: type[T]) -> type[T]:
        for method in dict.fromkeys(name for each in cls.__mro__ for name in vars(each)):  # in the order of the code
            function = getattr(cls, method)
            if not method.startswith("_") and inspect.iscoroutinefunction(function):
                setattr(cls, method, _looked_after(f"{name}.{method}", function))
        return cls

    return decorate


def _looked_after(name: str, function: Callable[..., Call]) -> Callable[..., Call]:
    frame = sys._getframe  # noqa: SLF001 - a traceback would cost more than the call

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Call:  # arguments after `self` would be copied twice
        made = function(*arguments, **keywords)
        caller = frame(1)
        calls: NotAwaited = arguments[0]._not_awaited  # noqa: SLF001 - of the same family
        calls[made] = name, caller.f_code, caller.f_lasti
        if not len(calls) % _TIDIED_EVERY:
            for ended in [each for each in calls if each.cr_frame is None]:  # there can be thousands
                del calls[ended]
        return made

    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(call)
    return call


def not_begun(calls: NotAwaited) -> list[Call]:
    """Return the calls that were not awaited, wrapped in a task or closed."""
    found: list[Call] = []
    for call in calls:
        if call.cr_frame is not None and not call.cr_suspended and not call.cr_running:
            found.append(call)  # noqa: PERF401 - a comprehension is one more call for each reconcile
    return found


def forgotten(calls: NotAwaited) -> tuple[str, ...]:
    """Close and return the calls that were not awaited, for example ``ctx.client.patch(...) at greeter.py:12``."""
    found: list[str] = []
    for call in not_begun(calls):
        call.close()
        name, code, instruction = calls[call]
        line = next((line for start, end, line in code.co_lines() if start <= instruction < end), None)
        found.append(f"{name}(...) at {place_in(code, line or code.co_firstlineno)}")
    calls.clear()
    return tuple(found)
