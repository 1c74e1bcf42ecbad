"""The exception of this room."""

from __future__ import annotations

from typing import final


@final
class QueueShutDownError(Exception):
    """The queue is shut down and empty: no item will come any more, and the worker may go home.

    Not a fault. ``async for work in queue`` ends by itself instead of raising it.

    Attributes:
        queue: The queue's name.
    """

    def __init__(self, queue: str) -> None:
        """Keep the queue's name."""
        super().__init__(f"the work queue {queue!r} is shut down and empty")
        self.queue = queue
