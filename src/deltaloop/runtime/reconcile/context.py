"""A reconciler's surroundings beside its request: a client, reasons, a recorder, a logger."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final, overload

from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import TypedKind
from deltaloop.client.verbs.request_keywords import Kind
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.errors import InvalidChildrenError, InvalidControllerError, WaitOnLoopError
from deltaloop.runtime.objects.status import Statuses, StatusWriter
from deltaloop.runtime.reconcile.calls import NotAwaited, names_calls
from deltaloop.runtime.reconcile.client import ReconcileClient

if TYPE_CHECKING:
    from deltaloop.events import ComponentRecorder
    from deltaloop.runtime.objects.children import Children, DeclaredChildren
    from deltaloop.runtime.objects.tracking import Tracker
    from deltaloop.runtime.program.lifespans import Lifespan

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.runtime.reconcile")


@final
class ReconcileLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose records say whose reconcile they belong to: ``controller``, ``key`` and ``reconcile``."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add what is known to the extras of the call, which win."""
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


@final
@dataclass(slots=True, kw_only=True)
class Surroundings:
    """What all reconciles of one controller share.

    Attributes:
        controller: Name of the controller.
        loop: The event loop that they run on.
        recorder: Recorder of Events, as this controller; None for none.
        children: Kinds of the controller's children; None if it declares none.
        statuses: Writes statuses.
        lifespans: Values of what lives as long as the program.
        tracker: Watches single objects; None if the controller declares no such kinds.
        remember: Returns the memory of an object that was cached when a reconcile began.
    """

    controller: str
    loop: asyncio.AbstractEventLoop | None = None
    recorder: ComponentRecorder | None = None
    children: DeclaredChildren | None = None
    statuses: Statuses | None = None
    lifespans: Mapping[Lifespan[Any], Any] = field(default_factory=dict["Lifespan[Any]", Any])
    tracker: Tracker | None = None
    remember: Callable[[Resource | None], dict[str, Any]] = lambda _: {}


@final
@names_calls("ctx")
class Context:
    """One reconcile's surroundings.

    It is no longer of use once the reconcile has ended.

    Attributes:
        request: Namespace and name of the object to reconcile.
        controller: The controller's name.
        number: The reconcile's number in its controller, from 1 on; own writes are labelled by it.
        client: Reads from caches, writes to the server; on the event loop only. See ``wait`` for threads.
        triggers: Why it runs, oldest first: from all adds that it serves, and from failed runs before it. Own writes
            are labelled. For people, logs and metrics: what to do follows from the objects, never from a trigger.
        triggers_dropped: How many triggers there were beyond those kept.
        attempts: Which try this is: 1, plus the runs of this key that failed since its last success.
        cleanup: Whether the object is being deleted and this run is a call of ``@reconcile.cleanup``.
    """

    __slots__ = (
        "_cancelled",
        "_check",
        "_children",
        "_key",
        "_logger",
        "_memo",
        "_seen",
        "_shared",
        "attempts",
        "cleanup",
        "client",
        "controller",
        "not_awaited",
        "number",
        "request",
        "triggers",
        "triggers_dropped",
    )

    def __init__(
        self,
        request: Request,
        shared: Surroundings,
        *,
        key: str,
        number: int,
        client: ReconcileClient,
        triggers: tuple[Trigger, ...],
        triggers_dropped: int,
        attempts: int,
        seen: Resource | None,
        check: Callable[[str], None],
    ) -> None:
        """Made by a manager."""
        self.request: Request = request
        self.controller: str = shared.controller
        self.number: int = number
        self.client: ReconcileClient = client
        self.triggers: tuple[Trigger, ...] = triggers
        self.triggers_dropped: int = triggers_dropped
        self.attempts: int = attempts
        self.cleanup: bool = False
        self.not_awaited: NotAwaited = client.not_awaited
        self._shared = shared
        self._key = key
        self._seen = seen
        self._check = check
        self._cancelled: dict[None, threading.Event] = {}
        self._logger: ReconcileLogger | None = None
        self._children: Children | None = None
        self._memo: dict[str, Any] | None = None

    @property
    def cancelled(self) -> threading.Event:
        """Set once the reconcile is to stop; for plain functions, which nothing else can tell; any thread.

        ``ctx.cancelled.wait(1.0)`` is a sleep that ends early.
        """
        # Most reconciles ask for none, and it costs as much as a look into a cache. The first one that is put in stays.
        return self._cancelled.get(None) or self._cancelled.setdefault(None, threading.Event())

    @property
    def logger(self) -> ReconcileLogger:
        """A logger whose records name the reconcile."""
        if self._logger is None:
            about = {"controller": self.controller, "key": self._key, "reconcile": self.number}
            self._logger = ReconcileLogger(_logger, about)
        return self._logger

    @property
    def children(self) -> Children:
        """The children of the object to reconcile: ``await ctx.children.apply(...)``; made when it is first used.

        Raises:
            InvalidChildrenError: If the controller declares none.
        """
        if self._children is None:
            declared = self._shared.children
            if declared is None:
                raise InvalidChildrenError(
                    f"controller {self.controller!r} declares no children. Write @dl.controller(..., children=[...])."
                )
            from deltaloop.runtime.objects.children import Children

            self._children = Children(
                self.request,
                declared,
                client=self.client,
                controller=self.controller,
                logger=self.logger,
            )
        return self._children

    def status(self, obj: object, *, on_error: str | None = None) -> StatusWriter:
        """Begin to say the status of an object; the end of the block writes it, once, if anything has changed.

        ``async with ctx.status(foo, on_error="Ready") as status: status["replicas"] = 3``; a plain function says
        ``with``. What is not said stays as it is. ``observedGeneration`` becomes that of ``obj``. Nothing is written
        after a cancellation, a time limit or lost leadership, and of an object that is gone meanwhile.

        Args:
            obj: The object as ``client`` gave it, typed or not.
            on_error: Type of a condition. An exception makes it False, with the error's type and text, redacted, and
                drops everything else that was said; without it an exception only drops. The exception goes on.

        Raises:
            InvalidArgumentError: If ``obj`` is None, or ``on_error`` is no type of a condition.
            MalformedObjectError: If ``obj`` is no object.
        """
        statuses = self._shared.statuses
        if statuses is None:
            raise RuntimeError("there are no statuses: a manager makes contexts that have them")
        return StatusWriter(obj, client=self.client, statuses=statuses, on_error=on_error, wait=self.wait)

    @overload
    async def track(self, kind: TypedKind[T], name: str, *, namespace: str | None = None) -> T | None: ...
    @overload
    async def track(self, kind: str, name: str, *, namespace: str | None = None) -> Resource | None: ...
    async def track(self, kind: Kind, name: str, *, namespace: str | None = None) -> Any:
        """Watch one object for as long as the object to reconcile needs it, and return it; None if there is none.

        When it is created, changed or deleted later, this key is reconciled. It is released by the next successful run
        that does not track it again, and when the object to reconcile is gone; a failed run releases nothing. The first
        call waits until the watch has begun, for the manager's ``sync_timeout`` at most. Own writes are seen at once.

        Args:
            kind: What kind of object; one of ``tracks=[...]`` of the controller.
            name: Its name; there need not be such an object.
            namespace: Its namespace; by default that of the object to reconcile.

        Raises:
            InvalidControllerError: If the controller does not declare the kind, or works in another namespace only.
            InvalidArgumentError: If there is no name, or no namespace for a kind that has some.
            CacheSyncError: If the watch does not begin in time, or is refused; it names kind and object.
            ReconcileStoppedError: If the reconcile was told to stop.
        """
        tracker = self._shared.tracker
        if tracker is None:
            problem = f"it tracks a {kind}, which it does not declare: @dl.controller(..., tracks=[{str(kind)!r}])"
            raise InvalidControllerError(self.controller, problem)
        place = namespace or self.request.namespace
        return await tracker.track(kind, name, place, key=self._key, client=self.client.live, check=self._check)

    @property
    def recorder(self) -> ComponentRecorder:
        """The recorder of Events, which reports as this controller; from any thread.

        Raises:
            RuntimeError: If the manager has none.
        """
        if self._shared.recorder is None:
            raise RuntimeError(
                "there is no event recorder: give one to Manager(..., recorder=EventRecorder(client, component=...)); "
                "`deltaloop run` has one"
            )
        return self._shared.recorder

    def lifespan(self, declared: Lifespan[T]) -> T:
        """Return the value of what lives as long as the program, such as a connection pool; any thread.

        Args:
            declared: What ``@dl.controller(..., lifespan=...)`` got.

        Raises:
            InvalidControllerError: If the controller does not declare it.
        """
        try:
            return cast("T", self._shared.lifespans[declared])
        except KeyError:
            problem = f"it does not declare the lifespan {declared.name}. Add it: @dl.controller(..., lifespan=...)"
            raise InvalidControllerError(self.controller, problem) from None

    @property
    def memo(self) -> dict[str, Any]:
        """What this controller remembers of the object, from run to run: retries and later runs get the same dict.

        It goes with the object (its successor of the same name begins with an empty one), with the term of leadership,
        and with the process. So it is for what saves work, such as a handle or an etag; what must not be lost belongs
        into the object's status. A key that names no object has an empty one in each run.
        """
        if self._memo is None:
            self._memo = self._shared.remember(self._seen)
        return self._memo

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop and wait for its result; for reconcilers that are plain functions.

        ``foo = ctx.wait(ctx.client.get(FOO, request.name))``. What it raises is raised here. Writes are refused once
        ``cancelled`` is set.

        Raises:
            WaitOnLoopError: If it is called on the event loop: await the coroutine there.
            RuntimeError: If the event loop has ended.
        """
        loop = self._shared.loop
        try:
            on_loop = asyncio.get_running_loop() is loop
        except RuntimeError:
            on_loop = False
        if on_loop or loop is None:
            work.close()
            raise WaitOnLoopError("ctx.wait(...)", "Await the coroutine")
        try:
            return asyncio.run_coroutine_threadsafe(work, loop).result()
        except RuntimeError:
            work.close()  # if the loop is no more, it was never started; else it has ended
            raise

    def __repr__(self) -> str:
        return f"<Context of {self.controller} {self.request}, reconcile {self.number}, attempt {self.attempts}>"
