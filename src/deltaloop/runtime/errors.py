"""The errors of this room.

DeltaloopError
├── InvalidArgumentError
│   └── InvalidControllerError   a controller is declared in a way that cannot work
├── NoStatusSubresourceError     the status of a kind that has no such subresource was to be written
├── ReconcileStoppedError        a write of a reconcile that was told to stop
├── ReconcileCancelledError      a reconciler raised CancelledError although nobody had cancelled it
├── ReconcileTimeoutError        in core/outcomes.py
├── TerminalError (workqueue)
│   ├── InvalidChildrenError     desired children that cannot be applied; an InvalidArgumentError, too
│   ├── InvalidRequestsError     in core/requests.py
│   ├── InvalidResultError       in core/outcomes.py
│   ├── NotAwaitedError          same
│   ├── InvalidDeadlineResultError       an `on_deadline` that returned neither True nor False
│   ├── OwnerGoneError           the owner of children is gone, going, or another one
│   ├── WaitOnLoopError          a blocking call of `ctx` in an `async def` function
│   └── UndeclaredAccessError    a controller reads or writes what it does not declare
├── AlreadyOwnedError            in ownership.py
├── NotOwnedError                an object that nothing controls has the name of a desired child
├── LifespanError                what lives as long as the program cannot begin or end
├── PreflightError               this program may not do what its controllers need
├── ShutdownTimeoutError         reconciles did not end in time, and were left behind
└── HealthServerError            the health or metrics server cannot listen
"""

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
    """A controller is declared in a way that cannot work; the message names the controller and what to change.

    Attributes:
        controller: Name of the controller.
    """

    def __init__(self, controller: str, problem: str) -> None:
        """Keep which one."""
        super().__init__(f"controller {controller!r}: {problem}")
        self.controller = controller


@final
class InvalidChildrenError(InvalidArgumentError, TerminalError):
    """Desired children cannot be applied, and nothing was sent; the message says which, why, and what to do.

    The key is parked: the same children would be refused again.
    """


@final
class NotOwnedError(DeltaloopError):
    """An object that nothing controls has the name of a desired child; nothing was sent.

    Attributes:
        object: The object that nothing controls.
    """

    def __init__(self, obj: str) -> None:
        """Keep which."""
        super().__init__(
            f"{obj} exists and nothing controls it: adopt=True takes it over, another name leaves it alone"
        )
        self.object = obj


@final
class OwnerGoneError(TerminalError):
    """The owner of children is gone, is being deleted, or is another one of the same name; nothing more was sent.

    The next event of the owner reconciles it again.

    Attributes:
        owner: Kind and key of the owner.
    """

    def __init__(self, owner: str, problem: str) -> None:
        """Keep whose children they are."""
        super().__init__(f"children of {owner} cannot be applied: it {problem}")
        self.owner = owner


@final
class NoStatusSubresourceError(DeltaloopError):
    """The status of an object was to be written, and its kind has no status subresource; nothing was written.

    Attributes:
        kind: The kind.
    """

    def __init__(self, kind: ResourceType[Any]) -> None:
        """Keep which."""
        super().__init__(
            f"{kind} has no status subresource: add `subresources: {{status: {{}}}}` to the version of its "
            "CustomResourceDefinition; of a kind that is not yours, write no status"
        )
        self.kind = kind


@final
class WaitOnLoopError(TerminalError, RuntimeError):
    """An ``async def`` function has made a blocking call, which works in plain functions only.

    Its key is parked: another run would do the same.

    Attributes:
        call: The call, such as ``with ctx.status(...)``.
    """

    def __init__(self, call: str, instead: str) -> None:
        """Keep the call."""
        super().__init__(f"`{call}` must be in a plain function, got an `async def`. {instead}.")
        self.call = call


@final
class UndeclaredAccessError(TerminalError):
    """A controller reads or writes what it does not declare; nothing was sent, and it is not tried again.

    That is a fault of the declaration, or of the reconciler: in a cluster the role that ``deltaloop generate rbac``
    prints would not allow it.

    Attributes:
        controller: Name of the controller.
        needed: What the request needs to be allowed.
    """

    def __init__(self, controller: str, needed: NeededAccess) -> None:
        """Keep who does what."""
        super().__init__(f"controller {controller!r} does not declare this: {needed}. Remedy: {needed.remedy()}")
        self.controller = controller
        self.needed = needed


@final
class InvalidDeadlineResultError(TerminalError, TypeError):
    """The ``on_deadline`` of a clean-up returned neither True nor False; the finalizer stays, and the key is parked.

    Attributes:
        returned: Name of the class of what came back.
    """

    def __init__(self, returned: str) -> None:
        """Keep what came back."""
        super().__init__(f"on_deadline returned a {returned}; return True to give up, or False to go on trying")
        self.returned = returned


@final
class ReconcileStoppedError(DeltaloopError):
    """A reconcile that was told to stop tried to write; nothing was sent.

    Let it end: its key runs again.

    Attributes:
        key: Key of the object that was reconciled.
        reason: Why it was to stop.
    """

    def __init__(self, key: str, reason: StopReason, action: str) -> None:
        """Keep whose and why."""
        super().__init__(f"{action} refused: the reconcile of {key!r} was told to stop, because {reason.value}")
        self.key = key
        self.reason = reason


@final
class ReconcileCancelledError(DeltaloopError):
    """A reconciler raised ``CancelledError`` although nobody had cancelled it; it is tried again as after any error.

    That is a fault of the reconciler, or of what it waited for: somebody cancelled a task that it awaits.
    """


@final
class LifespanError(DeltaloopError):
    """What lives as long as the program failed to begin or to end.

    The program ends. ``__cause__`` is the exception of the lifespan.

    Attributes:
        lifespan: Name of the function that ``@dl.lifespan`` decorates.
        phase: ``begin`` or ``end``.
    """

    def __init__(self, lifespan: str, phase: Literal["begin", "end"], error: Exception) -> None:
        """Keep which lifespan, and when it failed."""
        super().__init__(f"lifespan {lifespan} failed to {phase}: {error_text(error)}")
        self.lifespan = lifespan
        self.phase = phase


@final
class ShutdownTimeoutError(DeltaloopError):
    """Reconciles did not end in time although they were told to; the program should end without them.

    A thread, or a coroutine that swallows its cancellation, may still run. The lock was not given up for that reason.

    Attributes:
        keys: Which, as ``controller: key``.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        """Keep which."""
        super().__init__(f"{len(keys)} reconcile(s) did not end in time and were left behind: {', '.join(keys)}")
        self.keys: tuple[str, ...] = tuple(keys)


@final
class HealthServerError(DeltaloopError):
    """The health or metrics server cannot listen; the message says where and what to do.

    Attributes:
        host: The address that could not be listened on.
        port: The port that could not be listened on.
    """

    def __init__(self, message: str, *, host: str, port: int) -> None:
        """Keep where."""
        super().__init__(message)
        self.host = host
        self.port = port
