"""Work in steps that alternate between a webhook's function, on the event loop, and decoding or encoding."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]


def finished(steps: Steps[T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
