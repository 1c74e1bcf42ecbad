"""Event recorder that accepts events from all threads and sends them in one background task.

Recording an event never blocks. Events are dropped with a warning instead of being queued without limit.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, Self, final

from deltaloop._internal.fork_safety import fork_safe
from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.redaction import redact
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.times import utc_now
from deltaloop.events.core.correlation import MESSAGE_LIMIT, CorrelatorOptions
from deltaloop.events.core.delivery import Delivery, EventWrite, Outcome, Sleep
from deltaloop.events.core.draft import Correlated, EventApi, EventDraft
from deltaloop.events.core.event_object import (
    check_annotations,
    check_component,
    check_event_type,
    check_instance,
    check_words,
    default_instance,
    event_bodies,
    event_name,
    reference_of,
)
from deltaloop.events.core.series import EventMerger, SeriesOptions


class EventClient(Protocol):
    """Client interface that the recorder requires."""

    async def create(
        self,
        resource_type: ResourceType[Resource],
        obj: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
    ) -> Resource:
        """Create one object."""
        ...

    async def patch(
        self,
        resource_type: ResourceType[Resource],
        name: str,
        patch: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
    ) -> Resource:
        """Apply a merge patch to one object."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecorderOptions:
    """Options of an ``EventRecorder``.

    The defaults are those of client-go.

    Attributes:
        api: API for writing events. ``EVENTS_V1`` falls back to ``CORE_V1`` if the server does not serve it.
        queue_size: Maximum number of queued events. Further events are dropped.
        max_tries: Maximum number of attempts for one event if the server does not respond.
        retry_delay: Seconds between two attempts. For core/v1, the first delay is a random part of it. For
            events.k8s.io, each delay is up to a quarter longer.
        close_timeout: Timeout in seconds for leaving the context manager.
        correlation: Options for counting, combining and limiting core/v1 events.
        series: Options for the series of events.k8s.io/v1 events.
    """

    api: EventApi = EventApi.CORE_V1
    queue_size: int = 1000
    max_tries: int = 12
    retry_delay: float = 10.0
    close_timeout: float = 5.0
    correlation: CorrelatorOptions = field(default_factory=CorrelatorOptions)
    series: SeriesOptions = field(default_factory=SeriesOptions)

    def __post_init__(self) -> None:
        """Accept the API's name as a string, and check the options."""
        object.__setattr__(self, "api", EventApi(self.api))
        check_types(self)
        require_positive(
            "EventRecorderOptions",
            queue_size=self.queue_size,
            max_tries=self.max_tries,
            retry_delay=self.retry_delay,
            close_timeout=self.close_timeout,
        )


_log: Final = logging.getLogger("deltaloop.events")

_QUIET: Final = frozenset({Outcome.SENT, Outcome.EXISTS, Outcome.NAMESPACE_TERMINATING, Outcome.NOT_SERVED})


@final
class EventRecorder:
    """Recorder of Kubernetes Events.

    It is an async context manager and sends events while it is open. Events that you record earlier are queued, and
    events that you record later are dropped with a warning. On exit, it makes one attempt for each queued event and
    unwritten count, within ``close_timeout`` seconds in total. A cancellation drops the rest.

    Args:
        client: Client that sends the Events, usually a ``Client``.
        component: Reporting component, for example the controller's name. For events.k8s.io, it must be a qualified
            name.
        instance: Reporting instance, for example the pod's name. For events.k8s.io, the default consists of the
            component and the host name.
        options: Options such as the API, limits and retries.
        watchers: Functions called with each recorded event, in the recording thread, even if the event is merged or
            dropped. They must not block. Their exceptions are logged.
        clock: Monotonic clock in seconds for limits. In virtual time, pass the loop's clock.
        wall_clock: Function that returns the aware time for the events.
        random: Function that returns random numbers in [0, 1) for the delays.

    Raises:
        InvalidArgumentError: If the component is empty, or the component or the instance is invalid in the selected
            API. An instance in events.k8s.io has at most 128 bytes.
    """

    def __init__(
        self,
        client: EventClient,
        *,
        component: str,
        instance: str = "",
        options: EventRecorderOptions | None = None,
        watchers: Iterable[Callable[[EventDraft], object]] = (),
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], datetime] = utc_now,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._errors = ErrorSummaries()
        self._options = options if options is not None else EventRecorderOptions()
        check_component(self._options.api, component)
        check_instance(self._options.api, instance)
        self.component = component
        self._given_instance = instance
        self.instance: str = self._instance_of(component)
        self._client = client
        self._watchers = tuple(watchers)
        self._clock = clock
        self._wall_clock = wall_clock
        self._random = random
        self._merger = EventMerger(self._options.api, self._options.correlation, self._options.series)
        # Reentrant, because a destructor or a signal handler can record an event while this thread holds the lock.
        self._lock = fork_safe(threading.RLock(), self._in_child)
        self._waiting: deque[tuple[EventDraft, float]] = deque()
        self._last_nanoseconds = 0
        self._flushes_wanted = 0
        self._flushes_done = 0
        self._dropped = 0
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sender: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        self._flushed = asyncio.Event()
        self._closing = asyncio.Event()

    def _in_child(self, held: bool) -> None:
        """Drop events with a warning after a fork, because the event loop belongs to the parent process."""
        del held  # the lock only guards atomic steps
        if self._loop is not None:
            self._closed = True  # and it cannot be entered again

    def event(
        self,
        obj: object,
        event_type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: object | None = None,
        annotations: Mapping[str, str] | None = None,
        component: str = "",
    ) -> None:
        """Record an event about an object.

        It does not block and is thread-safe.

        Args:
            obj: Object (a ``Resource``, a mapping or an instance of a kind's class) or a reference to it. Events about
                cluster-scoped objects are stored in ``default``.
            event_type: ``Normal`` or ``Warning``.
            reason: Machine-readable reason as one word in CamelCase.
            message: Description for users. Recognized secrets are redacted, and it is truncated to 1024 characters.
            action: Action as one word in CamelCase. events.k8s.io requires one and uses the reason by default.
            related: Related object.
            annotations: Annotations of the Event object. Recognized secrets in their values are redacted.
            component: Reporting component. By default, the recorder's component. Use ``for_component`` to set it for
                many events.

        Raises:
            InvalidArgumentError: If the type is unknown, or if the server would reject the reason, action, component or
                annotations.
            MalformedObjectError: If the object has no name.
        """
        reason, action = _unicode(reason), _unicode(action)
        check_event_type(event_type)
        check_words(self._options.api, reason=reason, action=action)
        check_component(self._options.api, component or self.component)
        reference = reference_of(obj)
        other = reference_of(related) if related is not None else None
        shown = _shown(message)[:MESSAGE_LIMIT]
        shown_annotations = {str(key): _shown(text) for key, text in (annotations or {}).items()}
        check_annotations(shown_annotations)
        with self._lock:
            at, now, nanoseconds = self._moment()
            draft = EventDraft(
                name=event_name(reference.name, nanoseconds, fallback=str(uuid.uuid4())),
                namespace=reference.namespace or "default",
                reference=reference,
                type=event_type,
                reason=reason,
                message=shown,
                component=component or self.component,
                instance=self._instance_of(component) if component else self.instance,
                first_at=at,
                last_at=at,
                related=other,
                action=action,
                annotations=shown_annotations,
            )
            dropped = self._take(draft, now)
        self._show(draft)
        if dropped:
            why = "the recorder is closed" if self._closed else "the queue is full"
            _log.warning("dropped an event", extra=_names(draft, why=why, dropped=dropped))

    def for_component(self, component: str) -> ComponentRecorder:
        """Return a recorder for another component that shares the queue, task and limits of this one.

        Args:
            component: Reporting component, for example another controller of the same program.

        Raises:
            InvalidArgumentError: If the component is empty or invalid in the selected API.

        Source: client-go's ``EventBroadcaster.NewRecorder``; controller-runtime's ``GetEventRecorderFor``.
        """
        check_component(self._options.api, component)
        return ComponentRecorder(self, component)

    def watch(self, watcher: Callable[[EventDraft], object]) -> None:
        """Add a function that is called with each recorded event, like those in ``watchers``.

        Args:
            watcher: Function that must not block. It is called in the recording thread.
        """
        self._watchers = (*self._watchers, watcher)

    async def flush(self, timeout: float) -> bool:
        """Wait until all recorded events and counts were sent or given up.

        Args:
            timeout: Timeout in seconds.

        Returns:
            False if some events are still queued at the timeout.

        Raises:
            RuntimeError: If the recorder is not open.
        """
        if self._sender is None or self._sender.done():
            raise RuntimeError("flush() requires an open recorder. Call it inside `async with recorder`.")
        self._flushes_wanted += 1
        mine = self._flushes_wanted
        self._more.set()
        try:
            async with asyncio.timeout(timeout):
                while self._flushes_done < mine:
                    self._flushed.clear()
                    await self._flushed.wait()
        except TimeoutError:
            return False
        return True

    @property
    def api(self) -> EventApi:
        """API that the recorder currently uses."""
        return self._merger.api

    @property
    def dropped(self) -> int:
        """Number of events that were dropped because the queue was full or the recorder was closed."""
        return self._dropped

    def __len__(self) -> int:
        return len(self._waiting)

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise RuntimeError("an EventRecorder can be entered only once")
        loop = asyncio.get_running_loop()
        self._loop = loop  # the first step of the sender processes earlier events
        self._sender = loop.create_task(self._send_all(), name=f"events of {self.component}")
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._sender is not None
        with self._lock:
            self._closed = True
        self._closing.set()
        self._more.set()
        try:
            await asyncio.wait([self._sender], timeout=self._options.close_timeout)
        finally:
            if not self._sender.done():
                self._sender.cancel()
                await asyncio.wait([self._sender])
            left, counts = len(self._waiting), self._merger.unwritten
            if left or counts:
                self._waiting.clear()
                _log.warning("dropped unsent events at the end", extra={"dropped": left, "counts": counts})
        if not self._sender.cancelled():
            self._sender.result()  # raises if the sender failed because of a bug in deltaloop

    def _moment(self) -> tuple[datetime, float, int]:
        """Return the wall-clock and monotonic times, and unique nanoseconds. The caller must hold the lock."""
        at, now = self._wall_clock(), self._clock()
        given = int(at.timestamp() * 1e6) * 1000
        # No call in between, because a call could be interrupted by code that records another event in this thread.
        last = self._last_nanoseconds
        self._last_nanoseconds = nanoseconds = given if given > last else last + 1
        return at, now, nanoseconds

    def _instance_of(self, component: str) -> str:
        return self._given_instance or default_instance(self._options.api, component, platform.node())

    def _take(self, draft: EventDraft, now: float) -> int:
        """Queue an event and return 0, or return the total number of dropped events. The caller must hold the lock."""
        if self._closed or len(self._waiting) >= self._options.queue_size:
            self._dropped += 1
            return self._dropped
        self._waiting.append((draft, now))
        self._wake()
        return 0

    def _wake(self) -> None:
        """Wake the sender. The caller must hold the lock."""
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._more.set)
        except RuntimeError:
            _log.debug("event loop is closed, dropping events", extra={"waiting": len(self._waiting)})

    def _show(self, draft: EventDraft) -> None:
        for watcher in self._watchers:
            try:
                watcher(draft)
            except Exception as error:  # noqa: BLE001 - a watcher must not stop the work
                message, extra = "event watcher raised an exception", _names(draft)
                self._errors.log(_log, logging.ERROR, message, error, now=time.monotonic(), extra=extra)

    async def _send_all(self) -> None:
        while True:
            self._more.clear()
            wanted, closing = self._flushes_wanted, self._closing.is_set()
            for _ in range(len(self._waiting)):
                draft, now = self._waiting[0]
                events = self._merger.record(draft, now)
                if not events:
                    _log.debug("counted or dropped an event without a request", extra=_names(draft))
                await self._send(events)
                self._waiting.popleft()
            if closing or wanted > self._flushes_done:
                while (unwritten := self._merger.take_unwritten(self._clock())) is not None:
                    await self._send([unwritten])
                self._flushes_done = wanted
                self._flushed.set()
            if not self._waiting:
                if closing:
                    return
                await self._send(self._merger.due(self._clock()))
                await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        due_at = self._merger.next_due()
        delay = None if due_at is None else max(0.0, due_at - self._clock())
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._more.wait()

    async def _send(self, events: Iterable[Correlated]) -> None:
        left = deque(events)
        while left:
            if await self._deliver(left[0]) is not Outcome.NOT_SERVED:
                left.popleft()
                continue
            left = deque(self._merger.fall_back(left, self._clock()))
            _log.info(
                "switching to another events API",
                extra={"previous": str(self._options.api), "present": str(self._merger.api)},
            )

    async def _deliver(self, correlated: Correlated) -> Outcome:
        event, api = correlated.event, self._merger.api
        delivery = Delivery(
            is_update=correlated.is_update,
            max_tries=self._options.max_tries,
            retry_delay=self._options.retry_delay,
            api=api,
        )
        error: Exception | None = None
        while True:
            effect = delivery.ask()
            if isinstance(effect, Outcome):
                self._log_outcome(effect, event, error)
                return effect
            if isinstance(effect, Sleep):
                await self._wait(effect.delay)
                delivery.waited()
                continue
            try:
                await self._request(effect, api, event)
            except Exception as caught:  # noqa: BLE001 - Delivery classifies the error
                error = caught
                delivery.failed(caught, random=self._random(), closing=self._closing.is_set())
            else:
                delivery.sent()

    async def _request(self, step: EventWrite, api: EventApi, event: EventDraft) -> None:
        bodies = event_bodies(api, event)
        if step is EventWrite.CREATE:
            await self._client.create(bodies.resource_type, bodies.created, namespace=event.namespace)
        else:
            await self._client.patch(bodies.resource_type, event.name, bodies.patch, namespace=event.namespace)

    async def _wait(self, delay: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._closing.wait()

    def _log_outcome(self, outcome: Outcome, event: EventDraft, error: Exception | None) -> None:
        if outcome in _QUIET:
            _log.debug("handled an event", extra=_names(event, outcome=str(outcome)))
            return
        _log.warning(
            "cannot send an event",
            extra=_names(
                event,
                outcome=str(outcome),
                error=type(error).__name__,
                text=redact(str(error)),
            ),
        )

    def __repr__(self) -> str:
        return f"<EventRecorder {self.component}, {len(self._waiting)} waiting, {self._dropped} dropped>"


def _shown(text: object) -> str:
    """Redact secrets and replace lone surrogates, for example from a file name in an exception."""
    return _unicode(str(redact(text)))


def _unicode(text: str) -> str:
    return text.encode(errors="replace").decode()


def _names(event: EventDraft, **more: object) -> dict[str, object]:
    return {"object": str(event.reference), "event": f"{event.namespace}/{event.name}", "reason": event.reason, **more}


@final
class ComponentRecorder:
    """Recorder for one component, created by ``EventRecorder.for_component``.

    Attributes:
        component: Reporting component, for example ``kubelet`` (``reportingComponent``, ``source.component``).
    """

    __slots__ = ("_recorder", "component")

    def __init__(self, recorder: EventRecorder, component: str) -> None:
        self._recorder = recorder
        self.component: str = component

    def event(
        self,
        obj: object,
        event_type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: object | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Record an event about an object.

        See ``EventRecorder.event``. Thread-safe.
        """
        self._recorder.event(
            obj,
            event_type,
            reason,
            message,
            action=action,
            related=related,
            annotations=annotations,
            component=self.component,
        )

    async def flush(self, timeout: float) -> bool:
        """Wait until all recorded events and counts were sent or given up.

        See ``EventRecorder.flush``.

        Args:
            timeout: Timeout in seconds.

        Returns:
            False if some events are still queued at the timeout.

        Raises:
            RuntimeError: If the recorder is not open.
        """
        return await self._recorder.flush(timeout)

    def __repr__(self) -> str:
        return f"<ComponentRecorder {self.component} of {self._recorder!r}>"
