"""Answers that are made in steps, so that a server can run the costly ones outside of the event loop.

Steps take turns: reading and writing of objects, then the function of a webhook, then reading and writing again. The
functions always run on the event loop, one after another.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]


def finished(steps: Steps[T]) -> T:
    """Make all steps at once and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
