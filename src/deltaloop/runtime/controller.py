"""Declaration of controllers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, final, overload

import msgspec

from deltaloop._internal.function_signatures import is_coroutine_function
from deltaloop._internal.option_types import Options
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.path import Path
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import Kind, ResourceType, as_kind
from deltaloop.cache.core.store import IndexFunc
from deltaloop.runtime.core.access import Permission
from deltaloop.runtime.core.changes import Predicate
from deltaloop.runtime.core.hot_loop import HotLoopOptions
from deltaloop.runtime.core.outcomes import Result
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.errors import InvalidControllerError
from deltaloop.runtime.mapping import takes_caches
from deltaloop.runtime.reconcile.context import Context
from deltaloop.runtime.sources import Source, Watch
from deltaloop.workqueue.core.limiters import RateLimiter
from deltaloop.workqueue.options import QueueOptions

if TYPE_CHECKING:
    from deltaloop.runtime.program.lifespans import Lifespan
else:
    Lifespan = type  # ``inspect.signature`` evaluates the annotations of a Struct

ReconcileFunction: TypeAlias = Callable[[Request, Context], Awaitable[Result | None] | Result | None]

DeadlineFunction: TypeAlias = Callable[[Request, Context], Awaitable[bool] | bool]

_DEFAULTS: Final = QueueOptions()
_HOT_LOOPS: Final = HotLoopOptions()


@final
class Cleanup(msgspec.Struct, frozen=True):
    """Cleanup of deleted objects; ``on_deadline`` is called ``deadline`` seconds after the deletion."""

    function: ReconcileFunction
    deadline: float | None = None
    on_deadline: DeadlineFunction | None = None


@final
class Controller(Options, frozen=True, kw_only=True, eq=False):
    """A declared controller.

    You can call it in unit tests, which calls its function.

    Attributes:
        function: Reconcile function. It is ``async``, or a plain function that runs in a pool of ``workers`` threads.
        resource: Kind to reconcile.
        owns: Kinds of owned objects. A change reconciles the controlling owner.
        children: Kinds of owned objects that ``ctx.children`` applies and prunes. Permissions to create, patch and
            delete them are included.
        watches: Other kinds whose changes trigger reconciles.
        sources: Other triggers, such as channels and timers.
        reads: Kinds that are only read. They have a cache, but their changes trigger no reconciles.
        tracks: Kinds whose single objects ``ctx.track`` can watch. Read permissions are included.
        writes: Kinds that the controller writes (get, create, update, patch, delete), or a ``Permission`` for exact
            verbs. The role of ``deltaloop generate rbac``, the preflight and ``ManagerOptions.undeclared_access`` use
            them.
        workers: Maximum number of concurrent reconciles.
        predicates: Predicates that changes of ``resource`` must pass. For other kinds, set them in the ``Watch``.
        timeout: Time limit of one reconcile in seconds. None means no limit.
        rate_limiter: Factory of the rate limiter for retries. None means the default limiter.
        name: Name in logs, metrics and Events, unique in a manager. By default the kind in lower case.
        namespace: The only namespace to reconcile. None means that of the manager.
        indexers: Index functions of the cache of ``resource``, by name.
        queue: Options of the work queue, such as priorities, fair shares and bounds.
        hot_loops: Thresholds for hot keys, which are reported and delayed. None disables the detection.
        lifespan: Resource that is open as long as the program runs. ``ctx.lifespan`` returns its value.
        finalizer: Finalizer that keeps objects until ``cleanup`` has released their resources. It must have a domain,
            for example ``example.com/backup``. By default there is none.
        declared_cleanup: Cleanup declared with ``cleanup``; None before that.
    """

    function: ReconcileFunction
    resource: Kind
    owns: Sequence[Kind | Watch] = ()
    children: Sequence[Kind | Watch] = ()
    watches: Sequence[Kind | Watch] = ()
    sources: Sequence[Source] = ()
    reads: Sequence[Kind | Watch] = ()
    tracks: Sequence[Kind] = ()
    writes: Sequence[Kind | Permission] = ()
    workers: int = 1
    predicates: Sequence[Predicate] = ()
    timeout: float | None = None
    rate_limiter: Callable[[], RateLimiter[str]] | None = None
    name: str = ""
    namespace: str | None = None
    indexers: Mapping[str, IndexFunc[Resource] | Path] = {}
    queue: QueueOptions = _DEFAULTS
    hot_loops: HotLoopOptions | None = _HOT_LOOPS
    lifespan: Lifespan[Any] | None = None
    finalizer: str = ""
    declared_cleanup: Cleanup | None = None

    def __post_init__(self) -> None:
        """Reject invalid declarations.

        Raises:
            InvalidControllerError: If the declaration is invalid. The message names the controller and the necessary
                change.
        """
        msgspec.structs.force_setattr(self, "resource", as_kind(self.resource))
        if not self.name:
            msgspec.structs.force_setattr(self, "name", kind_of(self.resource).lower())
        self._require_reconciler("function", self.function)
        if self.finalizer:
            self._require_finalizer(self.finalizer)
        for name in ("owns", "children", "watches", "sources", "tracks", "writes", "predicates"):
            given: Any = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Iterable):
                problem = f"must be a list, got {type(given).__name__}. Use {name}=[...]."
                raise InvalidControllerError(self.name, problem, argument=name)
        if self.lifespan is not None:
            self._require_lifespan(self.lifespan)
        if self.workers < 1:
            raise InvalidControllerError(self.name, f"must be >= 1, got {self.workers!r}.", argument="workers")
        if self.timeout is not None and not (self.timeout > 0 and math.isfinite(self.timeout)):
            problem = f"must be a finite number > 0, or None, got {self.timeout!r}."
            raise InvalidControllerError(self.name, problem, argument="timeout")
        if self.rate_limiter is not None:
            needed = "no arguments, and return a new limiter"
            self._require_call("rate_limiter", self.rate_limiter, needed)
            self._require_plain("rate_limiter", self.rate_limiter)
        for name, index in self.indexers.items():
            if not isinstance(index, Path):
                self._require_call(f"indexers[{name!r}]", index, "an object", None)
                self._require_plain(f"indexers[{name!r}]", index)
        self._require_watches()
        for name in ("owns", "children", "watches", "reads", "tracks", "writes"):
            msgspec.structs.force_setattr(self, name, _named(getattr(self, name)))

    def _require_finalizer(self, name: str) -> None:
        from deltaloop.runtime.core.finalizing import is_finalizer

        if not is_finalizer(name):
            problem = f"must be a name with a domain, such as 'example.com/backup', got {self.finalizer!r}."
            raise InvalidControllerError(self.name, problem, argument="finalizer")

    def _require_lifespan(self, given: object) -> None:
        from deltaloop.runtime.program.lifespans import Lifespan

        if not isinstance(given, Lifespan):
            problem = f"must be made by @dl.lifespan, got {type(given).__name__}."
            raise InvalidControllerError(self.name, problem, argument="lifespan")

    def _require_reconciler(self, name: str, function: object) -> None:
        """Reject functions that cannot be called with a request and a context, and generators."""
        self._require_call(name, function, "a request and a context", None, None)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise InvalidControllerError(self.name, "must not be a generator. Remove `yield`.", argument=name)

    def _require_watches(self) -> None:
        for name, watches in (("owns", self.owns), ("reads", self.reads)):
            for watch in map(as_watch, watches):
                if watch.to is not None or watch.by_index:
                    problem = "must not have a Watch with `to` or `by_index`. Move it to watches."
                    raise InvalidControllerError(self.name, problem, argument=name)
        for watch in map(as_watch, self.children):
            if watch.to or watch.by_index or watch.label_selector or watch.field_selector:
                problem = "must not have a Watch with `to` or selectors, because the cache needs all children."
                raise InvalidControllerError(self.name, problem, argument="children")
        for watch in map(as_watch, self.watches):
            self._require_mapping(watch)

    def _require_mapping(self, watch: Watch) -> None:
        """Reject watches without exactly one valid mapping to the controller's objects."""
        if watch.to is not None and watch.by_index:
            problem = f"of the Watch of {watch.resource} cannot be combined with `by_index`. Use one of them."
            raise InvalidControllerError(self.name, problem, argument="to")
        if watch.by_index and watch.by_index not in self.indexers:
            index = f'indexers={{"{watch.by_index}": dl.field_path("spec.configRef.name")}}'
            problem = f"of the Watch of {watch.resource} must be an index of the controller. Add {index}."
            raise InvalidControllerError(self.name, problem, argument="by_index")
        if watch.to is None:
            return
        name = f"`to` of the Watch of {watch.resource}"
        if not takes_caches(watch.to):
            self._require_call(name, watch.to, "an object, or with an object and caches", None)
        self._require_plain(name, watch.to)

    def _require_plain(self, name: str, function: object) -> None:
        """Reject async functions where nothing awaits them."""
        if is_coroutine_function(function):
            problem = "must be a plain function, got `async`. Do I/O in the reconcile function."
            raise InvalidControllerError(self.name, problem, argument=name)

    def _require_call(self, name: str, function: object, needed: str, *arguments: object) -> None:
        """Reject objects that cannot be called with these arguments, as far as the signature is known."""
        if not callable(function):
            raise InvalidControllerError(self.name, f"must be a function that takes {needed}.", argument=name)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # built-in function without a signature
            return
        try:
            signature.bind(*arguments)
        except TypeError as error:
            bare = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
            taken = signature.replace(parameters=bare, return_annotation=signature.empty)
            problem = f"must take {needed}, got {taken} ({error})."
            raise InvalidControllerError(self.name, problem, argument=name) from None

    @property
    def needs_threads(self) -> bool:
        """Return whether one of the functions is plain."""
        cleanup = self.declared_cleanup
        beside = () if cleanup is None else (cleanup.function, cleanup.on_deadline)
        return not all(function is None or is_coroutine_function(function) for function in (self.function, *beside))

    @overload
    def cleanup(self, function: ReconcileFunction, /) -> ReconcileFunction: ...
    @overload
    def cleanup(
        self, /, *, deadline: float | None = None, on_deadline: DeadlineFunction | None = None
    ) -> Callable[[ReconcileFunction], ReconcileFunction]: ...
    def cleanup(
        self,
        function: ReconcileFunction | None = None,
        /,
        *,
        deadline: float | None = None,
        on_deadline: DeadlineFunction | None = None,
    ) -> ReconcileFunction | Callable[[ReconcileFunction], ReconcileFunction]:
        """Declare the decorated function as the cleanup for objects that are being deleted.

        It replaces the reconcile function for these objects, with the same retries and timeout. The finalizer is
        removed when it returns without requesting another reconcile. ``Result(requeue_after=...)`` means that it is not
        done yet. The function must be idempotent, because the program can end before the finalizer is removed.

        Args:
            function: Cleanup function. It is ``async``, or a plain function that runs in a thread.
            deadline: Time in seconds after the object's ``deletionTimestamp`` at which ``on_deadline`` is called. At
                least one cleanup is attempted first.
            on_deadline: Function that is called like ``function``, once per reconcile. If it returns True, the
                finalizer is removed without a complete cleanup. If it returns False, the retries continue.

        Raises:
            InvalidControllerError: If the declaration is invalid.
        """

        def declare(function: ReconcileFunction) -> ReconcileFunction:
            if not self.finalizer:
                problem = 'must be set for a cleanup: @dl.controller(..., finalizer="example.com/cleanup")'
                raise InvalidControllerError(self.name, problem, argument="finalizer")
            if self.declared_cleanup is not None:
                raise InvalidControllerError(self.name, "must not be declared twice.", argument="cleanup")
            self._require_reconciler("cleanup", function)
            if (deadline is None) != (on_deadline is None):
                raise InvalidControllerError(self.name, "and on_deadline must be set together.", argument="deadline")
            if deadline is not None and not (deadline > 0 and math.isfinite(deadline)):
                problem = f"must be a finite number > 0, got {deadline!r}."
                raise InvalidControllerError(self.name, problem, argument="deadline")
            if on_deadline is not None:
                self._require_reconciler("on_deadline", on_deadline)
            msgspec.structs.force_setattr(self, "declared_cleanup", Cleanup(function, deadline, on_deadline))
            return function

        return declare if function is None else declare(function)

    def __call__(self, request: Request, ctx: Context) -> Awaitable[Result | None] | Result | None:
        return self.function(request, ctx)

    def __repr__(self) -> str:
        return f"<Controller {self.name} of {self.resource}>"


def require_controllers(given: object, call: str) -> None:
    for each in cast("Sequence[object]", given) if isinstance(given, tuple | list) else (given,):
        if isinstance(each, Controller):
            continue
        if isinstance(each, Sequence) and not isinstance(each, str):
            got, remedy = f"a {type(cast('object', each)).__name__}", f"Unpack it: {call}(*controllers)"
        elif inspect.isfunction(each):
            got, remedy = f"the function {each.__name__}", "Decorate it with @dl.controller(...)"
        elif isinstance(each, type):
            got, remedy = f"the class {each.__name__}", f"Write {call}(reconcile), with a function of @dl.controller"
        else:
            got, remedy = f"a {type(each).__name__}", f"Write {call}(reconcile), with a function of @dl.controller"
        raise InvalidArgumentError(f"must be controllers, got {got}. {remedy}.", argument=f"arguments of {call}()")


def kinds_declared(controller: Controller, *, writes: bool = True) -> list[Kind]:
    beside = (*controller.owns, *controller.children, *controller.watches, *controller.reads, *controller.tracks)
    written = [each.resource if isinstance(each, Permission) else each for each in controller.writes if writes]
    return [controller.resource, *(as_watch(watch).resource for watch in beside), *written]


def kind_of(resource: Kind) -> str:
    """Return the kind's name, for example ``Foo`` for ``samples.deltaloop.dev/v1alpha1/Foo``."""
    named = as_kind(resource)
    return named.kind if isinstance(named, ResourceType) else named.rpartition("/")[2]


def group_kind(resource: Kind) -> tuple[str, str]:
    return str(as_kind(resource)).rpartition("/")[0].rpartition("/")[0], kind_of(resource)


def _named(given: Sequence[Any]) -> Sequence[Any]:
    classes = any(isinstance(each, type) for each in given)
    return [as_kind(each) if isinstance(each, type) else each for each in given] if classes else given


def as_watch(watch: Kind | Watch) -> Watch:
    return watch if isinstance(watch, Watch) else Watch(watch)


def controller(
    resource: Kind,
    *,
    owns: Sequence[Kind | Watch] = (),
    children: Sequence[Kind | Watch] = (),
    watches: Sequence[Kind | Watch] = (),
    sources: Sequence[Source] = (),
    reads: Sequence[Kind | Watch] = (),
    tracks: Sequence[Kind] = (),
    writes: Sequence[Kind | Permission] = (),
    workers: int = 1,
    predicates: Sequence[Predicate] = (),
    timeout: float | None = None,
    rate_limiter: Callable[[], RateLimiter[str]] | None = None,
    name: str = "",
    namespace: str | None = None,
    indexers: Mapping[str, IndexFunc[Resource] | Path] | None = None,
    queue: QueueOptions = _DEFAULTS,
    hot_loops: HotLoopOptions | None = _HOT_LOOPS,
    lifespan: Lifespan[Any] | None = None,
    finalizer: str = "",
) -> Callable[[ReconcileFunction], Controller]:
    """Declare the decorated function as a controller; the arguments are those of ``Controller``.

    ``timeout`` is in seconds. A function without ``async`` runs in a thread pool.

    Raises:
        InvalidControllerError: If the declaration is invalid.
    """
    options: dict[str, Any] = {**locals(), "indexers": indexers or {}}

    def declare(function: ReconcileFunction) -> Controller:
        return Controller(function=function, **options)

    return declare
