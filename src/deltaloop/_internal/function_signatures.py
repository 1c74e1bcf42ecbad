"""What can be told of a function before it is called: how many arguments it takes, whether it has to be awaited."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import CO_COROUTINE
from types import FunctionType


def accepts(function: Callable[..., object], *arguments: object) -> bool:
    """Tell whether a function can be called with such arguments, as far as its signature tells."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # built in, without a signature
        return True
    return True


def is_coroutine_function(function: object) -> bool:
    """Tell whether calling something returns what has to be awaited: ``async def``, with or without ``yield``."""
    if type(function) is FunctionType and function.__code__.co_flags & CO_COROUTINE:
        return True  # asked for each reconcile, and nearly always so
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (function, getattr(function, "__call__", None))  # noqa: B004 - an object may have an async __call__
    )
