"""Base classes of errors, in a module that every package can import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class DeltaloopError(Exception):
    """Base class of all errors of deltaloop.

    Subclasses with any constructor can be pickled.
    """

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(cls: type[DeltaloopError], args: tuple[Any, ...], fields: dict[str, Any]) -> DeltaloopError:
    """Restore an error from its arguments and fields without calling its constructor, which has other parameters."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


class InvalidArgumentError(DeltaloopError, ValueError):
    """An argument is invalid, and the caller must change it.

    Attributes:
        argument: Argument, option or field at the beginning of the message, for example ``QueueOptions.max_triggers``.
            Empty if the error concerns several arguments.
    """

    def __init__(self, problem: str = "", *, argument: str = "") -> None:
        super().__init__(f"{argument} {problem}" if argument else problem)
        self.argument = argument
