"""Where the keys of a controller come from, beside its own kind: watched kinds, channels and timers.

A source is declared once and attached to the work queue of each run of its controller. What a change asks for is
decided in ``core/requests.py`` and ``core/predicates.py``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, cast, final

from deltaloop._internal.fork_safety import fork_safe
from deltaloop._internal.function_signatures import is_coroutine_function
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.path import Path
from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import as_kind
from deltaloop.client.verbs.request_keywords import Kind
from deltaloop.runtime.core.polling import Polled
from deltaloop.runtime.core.predicates import Predicate
from deltaloop.runtime.core.requests import Mapped, Mapper, Request, keys_of
from deltaloop.runtime.enqueue import AcceptsKeys
from deltaloop.runtime.mapping import CachedMapper

OnTrigger: TypeAlias = Callable[[str, str], object]

_logger: Final = logging.getLogger("deltaloop.runtime")
_PENDING_LIMIT: Final = 10_000


@final
@dataclass(frozen=True, slots=True)
class Watch:
    """A kind whose changes ask for reconciles of a controller's objects.

    Attributes:
        resource: The kind to watch.
        to: From an object to what is to be reconciled, as keys, requests or objects; on an update it is asked about the
            old and the new object. A plain function of the object, or of the object and the controller's ``Caches``.
            None in ``owns`` is the owner, in ``watches`` the object's own namespace and name.
        by_index: In place of ``to``: an index of the controller (``indexers``) that holds the names of such objects, as
            ``namespace/name`` or, in the same namespace, as the bare name. Its objects are reconciled.
        predicates: Only changes that all of them pass count.
        namespace: Watch this namespace only; None is the manager's.
        label_selector: Only objects with such labels.
        field_selector: Only objects with such fields.
        indexers: Index functions of the cache, by name; paths such as ``dl.field_path("spec.nodeName")`` are some.
        source: What triggers and metrics call it; keep the number of names small.
    """

    resource: Kind
    to: Mapper | CachedMapper | None = field(default=None, kw_only=True)
    by_index: str = field(default="", kw_only=True)
    predicates: Sequence[Predicate] = field(default=(), kw_only=True)
    namespace: str | None = field(default=None, kw_only=True)
    label_selector: str = field(default="", kw_only=True)
    field_selector: str = field(default="", kw_only=True)
    indexers: Mapping[str, Callable[[Resource], Iterable[str]] | Path] = field(
        default_factory=dict[str, "Callable[[Resource], Iterable[str]] | Path"], kw_only=True
    )
    source: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Put the resource type in place of a class.

        Raises:
            InvalidArgumentError: If the class is no kind.
        """
        object.__setattr__(self, "resource", as_kind(self.resource))


class Source(Protocol):
    """Something else that asks for reconciles."""

    @property
    def name(self) -> str:
        """What triggers and metrics call it."""
        ...

    async def run(self, queue: AcceptsKeys, on_trigger: OnTrigger) -> None:
        """Queue keys until cancelled; runs as long as the caches do, on standbys, too."""
        ...


@final
class Channel:
    """Reconciles asked for by the program itself: a webhook, a message, another controller.

    Any thread. What is sent before the controller runs waits, up to ten thousand keys; a key that waits already is
    not kept twice.
    """

    def __init__(self, name: str = "channel") -> None:
        """Make an empty channel.

        Args:
            name: What triggers and metrics call it.
        """
        self.name = name
        # Re-entrant: a destructor or a signal handler may send while this very thread has the lock.
        self._lock = fork_safe(threading.RLock(), self._in_child)
        self._queues: list[tuple[AcceptsKeys, OnTrigger]] = []
        self._pending: deque[tuple[str, Trigger]] = deque()
        self._pending_keys: set[str] = set()

    def _in_child(self, held: bool) -> None:
        """Begin without the parent's queues after a fork; what waits, waits here, too."""
        self._queues = []
        if held:
            self._pending_keys = {key for key, _ in self._pending}

    def send(self, request: Request | Resource | str, *, verb: str = "event") -> bool:
        """Ask for a reconcile.

        Args:
            request: Whose: a request, a key, or the object itself.
            verb: What happened, as triggers and metrics call it; keep the number of words small.

        Returns:
            False if it was dropped, because nobody listens and too much waits already.

        Raises:
            InvalidKeyError: If it is a text and no key.
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
        """Pass on what was sent, and what comes, until cancelled."""
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
    """Reconciles in regular intervals: those of a list, or those that a polling function found changed.

    A list is asked for whether or not anything has changed, first after one ``period``. A polling function is asked at
    once and then every ``period``; it returns a dict from each key to something that is compared with what it was the
    last time, such as a version or an etag. Keys that are new, changed or gone are reconciled, all of the first answer.
    """

    def __init__(
        self,
        period: float,
        requests: Mapped | Callable[[], Mapped | Awaitable[Mapped]],
        *,
        changed_only: bool = False,
        name: str = "timer",
    ) -> None:
        """Make a timer.

        Args:
            period: Seconds from one to the next. One that takes longer delays the next, and is never met by it.
            requests: Whose: keys, requests or objects, or a function, plain or ``async``, that is asked for them each
                time; with ``changed_only`` the polling function, which runs in a thread if it is a plain one.
                ``Request("", "all")`` will do for a controller that looks at everything at once.
            changed_only: Whether only what differs from the last time is reconciled.
            name: What triggers and metrics call it.

        Raises:
            InvalidArgumentError: If the period is not positive and finite, or the rest does not say what to reconcile.
        """
        if not (period > 0 and math.isfinite(period)):
            raise InvalidArgumentError(
                f"Periodic.period is {period!r}; a finite number of seconds greater than 0 is needed"
            )
        if not callable(requests) and (changed_only or isinstance(requests, str | Request | Resource)):
            needed = "a function that returns a dict" if changed_only else "a list of keys, requests or objects"
            raise InvalidArgumentError(f"Periodic.requests is {requests!r}; {needed} is needed")
        self.name = name
        self.period = period
        # What can be gone through once only would ask for something once, and then for nothing.
        once = isinstance(requests, Iterator)
        self._requests: object = [*cast("Iterable[object]", requests)] if once else requests
        self._changed_only = changed_only

    async def run(self, queue: AcceptsKeys, on_trigger: OnTrigger) -> None:
        """Queue the keys once a period, until cancelled.

        Periods count from the start, whatever the work takes. What a function raises is logged, once a minute for each
        kind of error (the others with level DEBUG), and it is asked again after a period; what a polling function says
        then is compared with what it said before. A thread that polls is left to end by itself.
        """
        loop = asyncio.get_running_loop()
        errors, polled = ErrorSummaries(), Polled()
        pool: ThreadPoolExecutor | None = None
        if self._changed_only and not is_coroutine_function(self._requests):
            pool = ThreadPoolExecutor(1, thread_name_prefix=f"{self.name}-")
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
                    message = "a timer does not know what to reconcile; it asks again later"
                    now, extra = loop.time(), {"source": self.name}
                    errors.log(_logger, logging.ERROR, message, error, now=now, extra=extra, again=logging.DEBUG)
                for key, verb in changes:
                    queue.add(key, trigger=Trigger(source=self.name, verb=verb, at=loop.time()))
                    on_trigger(self.name, verb)
                due_at = max(due_at + self.period, loop.time())
        finally:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, pool: ThreadPoolExecutor | None) -> object:
        if not callable(self._requests):
            return self._requests
        function = cast("Callable[[], object]", self._requests)
        answer = function() if pool is None else await asyncio.get_running_loop().run_in_executor(pool, _call, function)
        return await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer


def _call(function: Callable[[], object]) -> object:
    try:
        return function()
    except StopIteration as error:
        # A future cannot carry it, and would never be done.
        raise RuntimeError("the polling function raised StopIteration") from error


def is_cancelled_from_outside(error: BaseException) -> bool:
    """Tell whether an error is the cancellation of the task that runs, and not of something that it awaits."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
