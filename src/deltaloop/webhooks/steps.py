"""Work in steps, so that a server can run expensive steps outside the event loop.

Steps alternate between decoding or encoding objects and running a webhook's function. Functions always run on the
event loop, one after another.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]


def finished(steps: Steps[T]) -> T:
    """Run all steps at once and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
