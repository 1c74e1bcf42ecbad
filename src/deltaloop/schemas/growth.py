"""A bound on what a small request may grow to, by defaults of its schema, by policies or by webhooks.

Code that makes an object larger reports the size before it does the work. The allowance belongs to the context: the
embedded server allows little on its event loop, and repeats a write that needs more in a thread.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, final

from deltaloop._internal.root_error import DeltaloopError

MOST_GROWN: Final = 3 * 1024 * 1024
"""Bytes. An object that is stored has at most half of them."""

ALLOWED: Final[ContextVar[int]] = ContextVar("deltaloop_growth", default=MOST_GROWN)


@final
class GrowthError(DeltaloopError):
    """An object would grow beyond what is allowed.

    Attributes:
        size: Bytes that it would have at least.
    """

    def __init__(self, size: int) -> None:
        """Keep the size."""
        super().__init__(f"an object must not grow beyond {ALLOWED.get()} bytes, got {size} or more")
        self.size = size


def check_growth(size: int) -> None:
    """Reject a size in bytes that is not allowed.

    Raises:
        GrowthError: If it is too large here.
    """
    if size > ALLOWED.get():
        raise GrowthError(size)
