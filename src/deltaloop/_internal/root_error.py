"""The root of all errors, below every room, so that each can derive its own from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class DeltaloopError(Exception):
    """Root of all errors that deltaloop raises on purpose; whatever its constructor takes, it can be pickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(cls: type[DeltaloopError], args: tuple[Any, ...], fields: dict[str, Any]) -> DeltaloopError:
    """Make an error again from its text and fields, without its constructor: that takes what the text was made of."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(fields)
    return error
