"""Context of a reconcile: client, triggers, recorder, logger and more."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final, overload

import msgspec

from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import Kind, TypedKind
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.errors import InvalidControllerError
from deltaloop.runtime.objects.status import Statuses, StatusWriter, status_writer
from deltaloop.runtime.reconcile.calls import NotAwaited, names_calls
from deltaloop.runtime.reconcile.client import ReconcileClient

if TYPE_CHECKING:
    from deltaloop.events import ComponentRecorder
    from deltaloop.runtime.objects.children import Children, DeclaredChildren
    from deltaloop.runtime.objects.tracking import Tracker
    from deltaloop.runtime.program.lifespans import Lifespan
    from deltaloop.sharding.share import Share

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.runtime.reconcile")


@final
class ReconcileLogger(logging.LoggerAdapter[logging.Logger]):
    """Logger that adds the reconcile to its records, as ``controller``, ``key`` and ``reconcile``."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


@final
class Surroundings(msgspec.Struct, kw_only=True):
    """State that all reconciles of one controller share; None means that the controller does not use the feature."""

    controller: str
    loop: asyncio.AbstractEventLoop | None = None
    recorder: ComponentRecorder | None = None
    children: DeclaredChildren | None = None
    statuses: Statuses | None = None
    lifespans: Mapping[Lifespan[Any], Any] = {}
    tracker: Tracker | None = None
    remember: Callable[[Resource | None], dict[str, Any]] = lambda _: {}
    share: Share | None = None


@final
@names_calls("ctx")
class Context(msgspec.Struct, eq=False):
    """Context of one reconcile.

    Do not use it after the reconcile has ended.

    Attributes:
        request: Namespace and name of the object to reconcile.
        controller: Name of the controller.
        number: Number of the reconcile within its controller, starting at 1. Own writes are labeled with it.
        client: Client that reads from caches and writes to the server. Use it on the event loop; for threads, see
            ``wait``.
        triggers: Causes of this reconcile, oldest first, including those of failed reconciles before it. Own writes are
            labeled. Use triggers for logs and metrics only, and base decisions on the objects.
        triggers_dropped: Number of further triggers that were not kept.
        attempts: Number of this attempt: 1 plus the failed reconciles of the key since its last success.
        cleanup: Whether the object is being deleted and this is a call of ``@reconcile.cleanup``.
    """

    request: Request
    controller: str
    number: int
    client: ReconcileClient
    triggers: tuple[Trigger, ...]
    triggers_dropped: int
    attempts: int
    _not_awaited: NotAwaited
    _shared: Surroundings
    _key: str
    _seen: Resource | None
    _check: Callable[[str], None]
    cleanup: bool = False
    _cancelled: dict[None, threading.Event] = {}
    _logger: ReconcileLogger | None = None
    _children: Any = None  # Children, which are imported on use
    _memo: dict[str, Any] | None = None

    @property
    def cancelled(self) -> threading.Event:
        """Event that is set when the reconcile must stop.

        Plain functions can check it in their thread. For example, ``ctx.cancelled.wait(1.0)`` is a sleep that ends
        early.
        """
        # Create the event on demand, because it costs as much as a cache lookup. setdefault is atomic across threads.
        return self._cancelled.get(None) or self._cancelled.setdefault(None, threading.Event())

    @property
    def logger(self) -> ReconcileLogger:
        """Logger whose records name the reconcile."""
        if self._logger is None:
            about: dict[str, object] = {"controller": self.controller, "key": self._key, "reconcile": self.number}
            if self._shared.share is not None:
                about["range"] = self._shared.share.range_name(self._key)
            self._logger = ReconcileLogger(_logger, about)
        return self._logger

    @property
    def children(self) -> Children:
        """Children of the reconciled object, for ``await ctx.children.apply(...)``.

        Raises:
            InvalidChildrenError: If the controller declares no children.
        """
        made: Children | None = self._children
        if made is None:
            declared = self._shared.children
            if declared is None:
                from deltaloop.runtime.objects.errors import InvalidChildrenError

                raise InvalidChildrenError(
                    f"must be declared by controller {self.controller!r}: @dl.controller(..., children=[...])",
                    argument="children",
                )
            from deltaloop.runtime.objects.children import Children

            made = self._children = Children(
                self.request,
                declared,
                client=self.client,
                controller=self.controller,
                logger=self.logger,
            )
        return made

    def status(self, obj: object, *, on_error: str | None = None) -> StatusWriter:
        """Open the status of an object, which is written once when the block ends, if anything has changed.

        For example, ``async with ctx.status(foo, on_error="Ready") as status: status["replicas"] = 3``. Plain functions
        use ``with``. Other fields stay unchanged, and ``observedGeneration`` becomes that of ``obj``. Nothing is
        written after a cancellation, a timeout or lost leadership, or if the object is gone.

        Args:
            obj: Object that ``client`` returned, typed or untyped.
            on_error: Type of a condition. If the block raises an exception, the condition becomes False with the
                error's type and redacted text, and the other changes are discarded. None only discards them. The
                exception is raised again.

        Raises:
            InvalidArgumentError: If ``obj`` is None, or ``on_error`` is not a valid condition type.
            MalformedObjectError: If ``obj`` is not an object.
        """
        statuses = self._shared.statuses
        if statuses is None:
            raise RuntimeError("ctx.status requires a context made by a manager")
        way = self.client._cached  # noqa: SLF001 - of the same family
        return status_writer(obj, way, statuses, on_error, self.wait)

    @overload
    async def track(self, kind: TypedKind[T], name: str, *, namespace: str | None = None) -> T | None: ...
    @overload
    async def track(self, kind: str, name: str, *, namespace: str | None = None) -> Resource | None: ...
    async def track(self, kind: Kind, name: str, *, namespace: str | None = None) -> Any:
        """Watch one object as long as the reconciled object needs it, and return it; None if it does not exist.

        Later changes of the object trigger a reconcile of this key. The watch is released by the next successful
        reconcile that does not track the object again, or when the reconciled object is gone. Failed reconciles release
        nothing. The first call waits for the watch, at most for the manager's ``sync_timeout``. Own writes are visible
        immediately.

        Args:
            kind: Kind of the object, declared in the controller's ``tracks=[...]``.
            name: Name of the object, which does not have to exist.
            namespace: Namespace of the object. By default that of the reconciled object.

        Raises:
            InvalidControllerError: If the controller does not declare the kind, or is limited to another namespace.
            InvalidArgumentError: If the name is empty, or the namespace of a namespaced kind is missing.
            CacheSyncError: If the watch does not begin in time or is rejected. The error names kind and object.
            ReconcileStoppedError: If the reconcile was told to stop.
        """
        tracker = self._shared.tracker
        if tracker is None:
            problem = f"must contain {kind}: @dl.controller(..., tracks=[{str(kind)!r}])"
            raise InvalidControllerError(self.controller, problem, argument="tracks")
        place = namespace or self.request.namespace
        return await tracker.track(kind, name, place, key=self._key, client=self.client.live, check=self._check)

    @property
    def recorder(self) -> ComponentRecorder:
        """Event recorder that reports as this controller and works in any thread.

        Raises:
            RuntimeError: If the manager has none.
        """
        if self._shared.recorder is None:
            raise RuntimeError(
                "ctx.event requires a recorder. Pass Manager(..., recorder=EventRecorder(client, component=...)), "
                "or use `deltaloop run`."
            )
        return self._shared.recorder

    def lifespan(self, declared: Lifespan[T]) -> T:
        """Return the value of a lifespan, such as a connection pool.

        You can call it in any thread.

        Args:
            declared: Lifespan that the controller declares as ``@dl.controller(..., lifespan=...)``.

        Raises:
            InvalidControllerError: If the controller does not declare it.
        """
        try:
            return cast("T", self._shared.lifespans[declared])
        except KeyError:
            problem = f"must be {declared.name}: @dl.controller(..., lifespan=...)"
            raise InvalidControllerError(self.controller, problem, argument="lifespan") from None

    @property
    def memo(self) -> dict[str, Any]:
        """Memory of the object for this controller; all reconciles of the object share the same dict.

        It is lost when the object is deleted (a successor of the same name starts with an empty dict), when the
        leadership term ends, and when the process ends. Use it to save work, for example for a handle or an etag, and
        use the status for data that must not be lost. If the key names no object, each reconcile gets an empty dict.
        """
        if self._memo is None:
            self._memo = self._shared.remember(self._seen)
        return self._memo

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop and wait for its result; for plain reconcile functions.

        For example, ``foo = ctx.wait(ctx.client.get(FOO, request.name))``. Exceptions of the coroutine are raised.
        Writes are rejected once ``cancelled`` is set.

        Raises:
            WaitOnLoopError: If it is called on the event loop, where you must await the coroutine.
            RuntimeError: If the event loop has ended.
        """
        loop = self._shared.loop
        try:
            on_loop = asyncio.get_running_loop() is loop
        except RuntimeError:
            on_loop = False
        if on_loop or loop is None:
            work.close()
            from deltaloop.runtime.reconcile.errors import WaitOnLoopError

            raise WaitOnLoopError("ctx.wait(...)", "Await the coroutine")
        try:
            return asyncio.run_coroutine_threadsafe(work, loop).result()
        except RuntimeError:
            work.close()  # avoid Python's warning if the loop has closed and never started it
            raise

    def __repr__(self) -> str:
        return f"<Context of {self.controller} {self.request}, reconcile {self.number}, attempt {self.attempts}>"
