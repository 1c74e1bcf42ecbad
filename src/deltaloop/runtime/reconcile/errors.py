"""Errors of a reconcile that uses its context wrongly."""

from __future__ import annotations

from typing import final

from deltaloop.runtime.core.declared_access import NeededAccess
from deltaloop.workqueue.errors import TerminalError


@final
class WaitOnLoopError(TerminalError, RuntimeError):
    """An ``async def`` function made a blocking call that only plain functions can make.

    The key is parked, because a retry would do the same.

    Attributes:
        call: Blocking call, for example ``with ctx.status(...)``.
    """

    def __init__(self, call: str, instead: str) -> None:
        super().__init__(f"`{call}` must be in a plain function, got an `async def`. {instead}.")
        self.call = call


@final
class UndeclaredAccessError(TerminalError):
    """A controller read or wrote a kind that it does not declare; nothing was sent, and the key is parked.

    Fix the declaration or the reconcile function. In a cluster, the role of ``deltaloop generate rbac`` would deny the
    request.

    Attributes:
        controller: Name of the controller.
        needed: Access that the request needs.
    """

    def __init__(self, controller: str, needed: NeededAccess) -> None:
        super().__init__(f"controller {controller!r} does not declare this access: {needed}. Remedy: {needed.remedy()}")
        self.controller = controller
        self.needed = needed


@final
class InvalidDeadlineResultError(TerminalError, TypeError):
    """The ``on_deadline`` of a cleanup did not return a bool; the finalizer stays, and the key is parked.

    Attributes:
        returned: Class name of the returned value.
    """

    def __init__(self, returned: str) -> None:
        super().__init__(f"on_deadline must return True to give up or False to continue, got {returned}.")
        self.returned = returned
