"""Inspection of functions before they are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import CO_COROUTINE
from types import FunctionType


def accepts(function: Callable[..., object], *arguments: object) -> bool:
    """Return whether a function accepts these arguments, which is assumed if it has no signature."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # builtin without a signature
        return True
    return True


def is_coroutine_function(function: object) -> bool:
    """Return whether the result of a call must be awaited or iterated asynchronously."""
    if type(function) is FunctionType and function.__code__.co_flags & CO_COROUTINE:
        return True  # fast path for each reconcile
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (function, getattr(function, "__call__", None))  # noqa: B004 - an object may have an async __call__
    )
