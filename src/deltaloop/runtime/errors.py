"""Errors of the runtime."""

from __future__ import annotations

from typing import cast, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.runtime.core.running import StopReason


@final
class InvalidControllerError(InvalidArgumentError):
    """A controller's declaration is invalid; the message names the controller and the necessary change.

    Attributes:
        controller: Name of the controller.
    """

    def __init__(self, controller: str, problem: str, *, argument: str = "") -> None:
        super().__init__(problem, argument=argument)
        Exception.__init__(self, f"controller {controller!r}: {self}")
        self.controller = controller


@final
class ReconcileStoppedError(DeltaloopError):
    """A reconcile tried to write after it was told to stop; nothing was sent.

    Let the reconcile end. Its key is reconciled again.

    Attributes:
        key: Key of the reconciled object.
        reason: Reason for stopping.
    """

    def __init__(self, key: str, reason: StopReason, action: str) -> None:
        super().__init__(f"{action} rejected: the reconcile of {key!r} must stop, because {reason.value}")
        self.key = key
        self.reason = reason


@final
class ReconcileCancelledError(DeltaloopError):
    """A reconcile function raised ``CancelledError`` without being canceled; it is retried like after other errors.

    The function has a bug, or another task canceled a task that it awaits.
    """


def is_write_refusal(error: BaseException) -> bool:
    """Return whether the error only reports writes that were rejected because the reconcile was stopped."""
    from deltaloop.leaderelection.guard import LeadershipLostError  # many programs elect no leader

    refusals = (ReconcileStoppedError, LeadershipLostError)
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return group.split(refusals)[1] is None
    return isinstance(error, refusals)
