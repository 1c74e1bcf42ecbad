"""Errors of the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop._internal.tracebacks import error_text
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.declared_access import NeededAccess
from deltaloop.runtime.core.running import StopReason
from deltaloop.workqueue.errors import TerminalError


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
class InvalidChildrenError(InvalidArgumentError, TerminalError):
    """Desired children cannot be applied, and nothing was sent; the message names the child, the cause and a remedy.

    The key is parked, because the same children would be rejected again.
    """


@final
class NotOwnedError(DeltaloopError):
    """An object without a controlling owner has the name of a desired child; nothing was sent.

    Attributes:
        object: Reference of the object.
    """

    def __init__(self, obj: str) -> None:
        super().__init__(
            f"{obj} exists without a controlling owner. Pass adopt=True to take control, or choose another name."
        )
        self.object = obj


@final
class OwnerGoneError(TerminalError):
    """The owner of children is gone, being deleted, or replaced by an object of the same name; nothing more was sent.

    The next event of the owner reconciles it again.

    Attributes:
        owner: Kind and key of the owner.
        problem: State of the owner, for example ``is gone``.
    """

    def __init__(self, owner: str, problem: str) -> None:
        super().__init__(f"children of {owner} cannot be applied: it {problem}")
        self.owner: str = owner
        self.problem: str = problem


@final
class NoStatusSubresourceError(DeltaloopError):
    """The kind of an object has no status subresource, so its status was not written.

    Attributes:
        kind: Kind of the object.
    """

    def __init__(self, kind: ResourceType[Any]) -> None:
        super().__init__(
            f"{kind} has no status subresource. Add `subresources: {{status: {{}}}}` to the version of its "
            "CustomResourceDefinition, or do not write a status if the kind belongs to another program."
        )
        self.kind = kind


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


@final
class LifespanError(DeltaloopError):
    """A lifespan failed to begin or to end.

    The program ends. ``__cause__`` is the exception of the lifespan.

    Attributes:
        lifespan: Name of the function that ``@dl.lifespan`` decorates.
        phase: ``begin`` or ``end``.
    """

    def __init__(self, lifespan: str, phase: Literal["begin", "end"], error: Exception) -> None:
        super().__init__(f"lifespan {lifespan} failed to {phase}: {error_text(error)}")
        self.lifespan = lifespan
        self.phase = phase


@final
class ShutdownTimeoutError(DeltaloopError):
    """Reconciles did not end in time after they were told to stop; exit the program without them.

    A thread, or a coroutine that suppresses its cancellation, can still run. For this reason the lock was not released.

    Attributes:
        keys: Keys of the reconciles, as ``controller: key``.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"{len(keys)} reconcile(s) did not end in time and were abandoned: {', '.join(keys)}")
        self.keys: tuple[str, ...] = tuple(keys)


@final
class HealthServerError(DeltaloopError):
    """The health or metrics server cannot listen; the message names the address and a remedy.

    Attributes:
        host: Address of the server.
        port: Port of the server.
    """

    def __init__(self, message: str, *, host: str, port: int) -> None:
        super().__init__(message)
        self.host = host
        self.port = port
