"""The exceptions of this room.

DeltaloopError
├── QueueShutDownError   the queue is shut down and empty: the worker may go home
└── TerminalError        raised by work: trying again would not help, so the item is parked
"""

from __future__ import annotations

from typing import Final, cast, final

from deltaloop._internal.root_error import DeltaloopError

_PARKS: Final = "_deltaloop_parks"


@final
class QueueShutDownError(DeltaloopError):
    """The queue is shut down and empty: no item will come any more, and the worker may go home.

    Not a fault. ``async for work in queue`` ends by itself instead of raising it.

    Attributes:
        queue: The queue's name.
    """

    def __init__(self, queue: str) -> None:
        """Keep the queue's name."""
        super().__init__(f"the work queue {queue!r} is shut down and empty")
        self.queue = queue


class TerminalError(DeltaloopError):
    """Raise it from work that failed for good: a ``RateLimitingQueue`` parks the item instead of trying again.

    The item comes again when it is added again, because then something has changed, or when it is revived. Raise it
    ``from`` the error that was the reason; subclasses are welcome.

    Source: sigs.k8s.io/controller-runtime pkg/reconcile ``TerminalError``.
    """


def is_terminal(error: BaseException | None) -> bool:
    """Return whether ``error`` says that trying again would not help.

    A group does if all its members do: while one of them may go away, another try makes sense.
    """
    if getattr(error, _PARKS, False):
        return True
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(is_terminal(member) for member in group.exceptions)
    return isinstance(error, TerminalError)


def decided(error: Exception, *, parks: bool) -> Exception:
    """Return an error, or a group, for the queue: it parks the item if so decided, whatever the class.

    It is set at each failure because several runs can share an error, for example that of one discovery.
    """
    setattr(error, _PARKS, parks)
    return error
