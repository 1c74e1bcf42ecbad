"""Errors of work queues.

DeltaloopError
├── QueueShutDownError   the queue is shut down and empty; ends the worker
└── TerminalError        raised by a worker to park the item without a retry
"""

from __future__ import annotations

from typing import Final, cast, final

from deltaloop._internal.root_error import DeltaloopError

_PARKS: Final = "_deltaloop_parks"


@final
class QueueShutDownError(DeltaloopError):
    """The queue is shut down and empty, so the worker can stop.

    This is not a failure. ``async for work in queue`` ends without raising it.

    Attributes:
        queue: Name of the queue.
    """

    def __init__(self, queue: str) -> None:
        super().__init__(f"the work queue {queue!r} is shut down and empty")
        self.queue = queue


class TerminalError(DeltaloopError):
    """Error for permanent failures: a ``RateLimitingQueue`` parks the item instead of retrying it.

    The item runs again when it is added again, because something has changed, or when you retry its dead letter. Raise
    the error ``from`` its cause. You can define subclasses.

    Source: sigs.k8s.io/controller-runtime pkg/reconcile ``TerminalError``.
    """


def is_terminal(error: BaseException | None) -> bool:
    """Return whether retries are useless.

    A group is terminal if all its members are, because a retry can help if one of them is not.
    """
    if getattr(error, _PARKS, False):
        return True
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(is_terminal(member) for member in group.exceptions)
    return isinstance(error, TerminalError)


def decided(error: Exception, *, parks: bool) -> Exception:
    """Mark an error or group so that the queue parks its item or not, independent of its class.

    Each failure sets the mark, because several runs can share an error, for example of one discovery.
    """
    setattr(error, _PARKS, parks)
    return error
