"""Sources of a controller's keys in addition to its own kind: watches, channels and timers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
import math
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast, final

import msgspec

from deltaloop._internal.fork_safety import fork_safe
from deltaloop._internal.function_signatures import is_coroutine_function
from deltaloop._internal.option_types import Options
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.path import Path
from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import Kind, as_kind
from deltaloop.runtime.core.changes import Predicate
from deltaloop.runtime.core.requests import Mapped, Mapper, Request, keys_of
from deltaloop.runtime.mapping import CachedMapper

if TYPE_CHECKING:
    from deltaloop.runtime.enqueue import AcceptsKeys

OnTrigger: TypeAlias = "Callable[[str, str], object]"

_logger: Final = logging.getLogger("deltaloop.runtime")
_PENDING_LIMIT: Final = 10_000


class _Watched(Options, frozen=True):
    resource: Kind


@final
class Watch(_Watched, frozen=True, kw_only=True):
    """A kind whose changes reconcile a controller's objects.

    Attributes:
        resource: Kind to watch.
        to: Plain function that returns the objects to reconcile, as keys, requests or objects. It takes the changed
            object and, optionally, the controller's ``Caches``. For updates it is called with the old and the new
            object. None means the owner in ``owns``, and the same namespace and name in ``watches``.
        by_index: Alternative to ``to``: name of an index (``indexers`` of the controller) with names of such objects,
            as ``namespace/name`` or, within the same namespace, the bare name. The indexed objects are reconciled.
        predicates: Predicates that changes must pass.
        namespace: The only namespace to watch. None means that of the manager.
        label_selector: Label selector of the objects.
        field_selector: Field selector of the objects.
        indexers: Index functions of the cache by name, or paths such as ``dl.field_path("spec.nodeName")``.
        source: Name in triggers and metrics. Use a small number of names.
    """

    to: Mapper | CachedMapper | None = None
    by_index: str = ""
    predicates: Sequence[Predicate] = ()
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    indexers: Mapping[str, Callable[[Resource], Iterable[str]] | Path] = {}
    source: str = ""

    def __post_init__(self) -> None:
        """Replace a class with its resource type.

        Raises:
            InvalidArgumentError: If the class is not a kind.
        """
        msgspec.structs.force_setattr(self, "resource", as_kind(self.resource))


class Source(Protocol):
    """Other source of reconciles."""

    @property
    def name(self) -> str:
        """Return the name in triggers and metrics."""
        ...

    async def run(self, queue: AcceptsKeys, on_trigger: OnTrigger) -> None:
        """Queue keys until canceled; runs as long as the caches, also on standbys."""
        ...


@final
class Channel:
    """Source of reconciles that the program requests, for example for a webhook or a message.

    You can use it in any thread. Up to ten thousand distinct keys wait until the controller runs.
    """

    def __init__(self, name: str = "channel") -> None:
        """Create an empty channel.

        Args:
            name: Name in triggers and metrics.
        """
        self.name = name
        # Reentrant, because a destructor or a signal handler can send while its thread has the lock.
        self._lock = fork_safe(threading.RLock(), self._in_child)
        self._queues: list[tuple[AcceptsKeys, OnTrigger]] = []
        self._pending: deque[tuple[str, Trigger]] = deque()
        self._pending_keys: set[str] = set()

    def _in_child(self, held: bool) -> None:
        """Drop the parent's queues after a fork, but keep the waiting keys."""
        self._queues = []
        if held:
            self._pending_keys = {key for key, _ in self._pending}

    def send(self, request: Request | Resource | str, *, verb: str = "event") -> bool:
        """Request a reconcile.

        Args:
            request: Request, key or object to reconcile.
            verb: Event name in triggers and metrics. Use a small number of names.

        Returns:
            False if the request was dropped, because no controller runs and too many keys are waiting.

        Raises:
            InvalidKeyError: If a string is not a valid key.
        """
        key = Request.from_key(request).key if isinstance(request, str) else request.key
        with self._lock:
            queues = [*self._queues]
            if not queues:
                if key in self._pending_keys:
                    return True
                if len(self._pending) >= _PENDING_LIMIT:
                    return False
                self._pending_keys.add(key)
                self._pending.append((key, Trigger(source=self.name, verb=verb)))
        for queue, on_trigger in queues:
            queue.add(key, trigger=Trigger(source=self.name, verb=verb))
            on_trigger(self.name, verb)
        return True

    async def run(self, queue: AcceptsKeys, on_trigger: OnTrigger) -> None:
        """Queue waiting and new keys until canceled."""
        with self._lock:
            self._queues.append((queue, on_trigger))
            waiting = [*self._pending]
            self._pending.clear()
            self._pending_keys.clear()
        for key, trigger in waiting:
            queue.add(key, trigger=trigger)
            on_trigger(trigger.source, trigger.verb)
        try:
            await asyncio.Event().wait()
        finally:
            with self._lock:
                self._queues.remove((queue, on_trigger))


@final
class Periodic:
    """Source of reconciles at regular intervals, for fixed keys or for changes that a polling function finds.

    Fixed keys are reconciled after each ``period``, even without a change. A polling function is called immediately and
    then after each ``period``. It returns a dict from keys to values, such as versions or etags. Keys whose value is
    new, changed or gone are reconciled, which includes all keys of the first result.
    """

    def __init__(
        self,
        period: float,
        requests: Mapped | Callable[[], Mapped | Awaitable[Mapped]],
        *,
        changed_only: bool = False,
        name: str = "timer",
    ) -> None:
        """Create a timer.

        Args:
            period: Interval in seconds. A call that takes longer delays the next call, and calls never overlap.
            requests: Keys, requests or objects to reconcile, or a plain or ``async`` function that returns them. With
                ``changed_only`` it is the polling function, which runs in a thread if it is plain. For a controller
                that always processes all objects, use ``Request("", "all")``.
            changed_only: Whether to reconcile only changed keys.
            name: Name in triggers and metrics.

        Raises:
            InvalidArgumentError: If the period is not positive and finite, or ``requests`` is invalid.
        """
        if not (period > 0 and math.isfinite(period)):
            raise InvalidArgumentError(f"must be a finite number > 0, got {period!r}.", argument="Periodic.period")
        if not callable(requests) and (changed_only or isinstance(requests, str | Request | Resource)):
            needed = "a function that returns a dict" if changed_only else "a list of keys, requests or objects"
            raise InvalidArgumentError(f"must be {needed}, got {requests!r}.", argument="Periodic.requests")
        self.name = name
        self.period = period
        # An iterator would return its items only in the first period.
        once = isinstance(requests, Iterator)
        self._requests: object = [*cast("Iterable[object]", requests)] if once else requests
        self._changed_only = changed_only

    async def run(self, queue: AcceptsKeys, on_trigger: OnTrigger) -> None:
        """Queue the keys once per period until canceled.

        Periods count from the start, regardless of the duration of calls. Exceptions of the function are logged, at
        most once a minute per kind of error (others with level DEBUG), and it is called again after a period. Its
        result is then compared with the last valid result. A polling thread that still runs at the end is left to end
        by itself.
        """
        from deltaloop.runtime.core.polling import Polled

        loop = asyncio.get_running_loop()
        errors, polled = ErrorSummaries(), Polled()
        pool: concurrent.futures.ThreadPoolExecutor | None = None
        if self._changed_only and not is_coroutine_function(self._requests):
            pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix=f"{self.name}-")
        due_at = loop.time() + (0.0 if self._changed_only else self.period)
        try:
            while True:
                await asyncio.sleep(due_at - loop.time())
                changes: list[tuple[str, str]] = []
                try:
                    answer = await self._ask(pool)
                    changes = (
                        polled.changes(answer) if self._changed_only else [(key, "tick") for key in keys_of(answer)]
                    )
                except (Exception, asyncio.CancelledError) as error:
                    if is_cancelled_from_outside(error):
                        raise
                    message = "polling function failed, retrying"
                    now, extra = loop.time(), {"source": self.name}
                    errors.log(_logger, logging.ERROR, message, error, now=now, extra=extra, again=logging.DEBUG)
                for key, verb in changes:
                    queue.add(key, trigger=Trigger(source=self.name, verb=verb, at=loop.time()))
                    on_trigger(self.name, verb)
                due_at = max(due_at + self.period, loop.time())
        finally:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, pool: concurrent.futures.ThreadPoolExecutor | None) -> object:
        if not callable(self._requests):
            return self._requests
        function = cast("Callable[[], object]", self._requests)
        answer = function() if pool is None else await asyncio.get_running_loop().run_in_executor(pool, _call, function)
        return await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer


def _call(function: Callable[[], object]) -> object:
    try:
        return function()
    except StopIteration as error:
        # A future cannot carry StopIteration and would never be done.
        raise RuntimeError("the polling function raised StopIteration") from error


def is_cancelled_from_outside(error: BaseException) -> bool:
    """Return whether an error is the cancellation of the current task, not of an awaited task."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
