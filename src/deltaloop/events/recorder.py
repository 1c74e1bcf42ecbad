"""The event recorder: takes events from any thread and sends them in one background task.

What becomes of an event is decided in core/merging.py (core/v1: core/correlation.py counts, combines, drops;
events.k8s.io/v1: core/series.py makes series) and core/delivery.py (create, patch, try again, give up); its fields are
in core/event_object.py. Events are for people: recording one never blocks and never stops the work, and events are
dropped, with a line in the log, rather than kept without bound.
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
from datetime import datetime
from types import TracebackType
from typing import Final, Self, final

from deltaloop._internal.fork_safety import fork_safe
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.redaction import redact
from deltaloop.api.times import utc_now
from deltaloop.events.core.correlation import MESSAGE_LIMIT
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
from deltaloop.events.core.merging import EventMerger
from deltaloop.events.options import EventClient, EventRecorderOptions

_log: Final = logging.getLogger("deltaloop.events")

_QUIET: Final = frozenset({Outcome.SENT, Outcome.EXISTS, Outcome.NAMESPACE_TERMINATING, Outcome.NOT_SERVED})


@final
class EventRecorder:
    """Records events about objects as Events.

    An async context manager; the events are sent while it is open. Events recorded before it is entered wait; those
    after it was left are dropped with a line in the log. Leaving makes one try for each event that waits and each
    count that is not on the server, within ``close_timeout`` seconds in all; cancellation then drops the rest.

    Args:
        client: Sends the Events, usually a ``Client``.
        component: Who reports, such as the controller's name; for events.k8s.io a qualified name.
        instance: Which one of them, such as the pod's name; for events.k8s.io the component and the host by default.
        options: Which of the two Event APIs, bounds, tries and correlation.
        watchers: Called with each event as it is recorded, merged or not, sent or not, in the thread that records it;
            they must not block, and what they raise is logged.
        clock: Seconds that never go back, for the limits. In virtual time: the loop's clock.
        wall_clock: Aware time that is written into the events.
        random: Draws numbers in [0, 1), for the waits.

    Raises:
        InvalidArgumentError: If the component is empty, or component or instance cannot be one in the API of the
            options (an instance of events.k8s.io has at most 128 bytes).
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
        # Re-entrant: a destructor or a signal handler may record an event while this very thread has the lock.
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
        """Drop events with a warning after a fork, if the loop that sends them is the parent's."""
        del held  # what it guards are single steps
        if self._loop is not None:
            self._closed = True  # and it stays entered: entering it once more is refused

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
        """Record that something happened to an object.

        Returns at once; from any thread.

        Args:
            obj: The object (a ``Resource``, a mapping, or of a class), or a reference to it. Events about objects
                without a namespace go to ``default``.
            event_type: ``Normal`` or ``Warning``.
            reason: Why, as one word in CamelCase that a program can switch on.
            message: What happened, for people; secrets that are recognised are hidden, and 1024 characters are kept.
            action: What was done or tried, as one word in CamelCase; events.k8s.io demands one, and takes the reason
                if there is none.
            related: Another object that has to do with it.
            annotations: Annotations of the Event object; secrets in their values that are recognised are hidden.
            component: Who reports; the recorder's by default. ``for_component`` says it once for many events.

        Raises:
            InvalidArgumentError: If the type is unknown, or the server would refuse reason, action, component or
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
            _log.warning("an event was dropped", extra=_names(draft, why=why, dropped=dropped))

    def for_component(self, component: str) -> ComponentRecorder:
        """Return a recorder for another component that shares this one's queue, task and limits.

        Args:
            component: Who reports, such as another controller of the same program.

        Raises:
            InvalidArgumentError: If the component is empty, or cannot be one in the API of the options.

        Source: client-go's ``EventBroadcaster.NewRecorder``; controller-runtime's ``GetEventRecorderFor``.
        """
        check_component(self._options.api, component)
        return ComponentRecorder(self, component)

    async def flush(self, timeout: float) -> bool:
        """Wait until everything recorded so far has been sent or given up, the counts of series included.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            False if events were still waiting then; they stay queued.

        Raises:
            RuntimeError: If the recorder is not open.
        """
        if self._sender is None or self._sender.done():
            raise RuntimeError("flush() needs an open recorder: use it inside `async with recorder`")
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
        """The API in which events are written now."""
        return self._merger.api

    @property
    def dropped(self) -> int:
        """How many events were dropped, because the queue was full or the recorder closed."""
        return self._dropped

    def __len__(self) -> int:
        return len(self._waiting)

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise RuntimeError("an EventRecorder is entered once")
        loop = asyncio.get_running_loop()
        self._loop = loop  # what was recorded before is found by the first step of the sender
        self._sender = loop.create_task(self._send_all(), name=f"events of {self.component}")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
                _log.warning("events were not sent before the end", extra={"dropped": left, "counts": counts})
        if not self._sender.cancelled():
            self._sender.result()  # a bug of ours is shown, not hidden

    def _moment(self) -> tuple[datetime, float, int]:
        """Return the time, twice, and a number of nanoseconds that no event has yet. Called with the lock held."""
        at, now = self._wall_clock(), self._clock()
        given = int(at.timestamp() * 1e6) * 1000
        # Without a call in between: at a call this very thread may be interrupted, and record another event.
        last = self._last_nanoseconds
        self._last_nanoseconds = nanoseconds = given if given > last else last + 1
        return at, now, nanoseconds

    def _instance_of(self, component: str) -> str:
        return self._given_instance or default_instance(self._options.api, component, platform.node())

    def _take(self, draft: EventDraft, now: float) -> int:
        """Queue an event; return 0, or how many were dropped so far. Called with the lock held."""
        if self._closed or len(self._waiting) >= self._options.queue_size:
            self._dropped += 1
            return self._dropped
        self._waiting.append((draft, now))
        self._wake()
        return 0

    def _wake(self) -> None:
        """Tell the sender that there is work; called with the lock held."""
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._more.set)
        except RuntimeError:
            _log.debug("the loop is closed; events stay unsent", extra={"waiting": len(self._waiting)})

    def _show(self, draft: EventDraft) -> None:
        for watcher in self._watchers:
            try:
                watcher(draft)
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the work
                message, extra = "a watcher of events raised", _names(draft)
                self._errors.log(_log, logging.ERROR, message, error, now=time.monotonic(), extra=extra)

    async def _send_all(self) -> None:
        while True:
            self._more.clear()
            wanted, closing = self._flushes_wanted, self._closing.is_set()
            for _ in range(len(self._waiting)):
                draft, now = self._waiting[0]
                events = self._merger.record(draft, now)
                if not events:
                    _log.debug("an event was counted or dropped without a request", extra=_names(draft))
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
                "events go to another API from now on",
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
            except Exception as caught:  # noqa: BLE001 - the core tells what it means
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
            _log.debug("an event was handled", extra=_names(event, outcome=str(outcome)))
            return
        _log.warning(
            "an event could not be sent",
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
    """Hide what is secret, and write a question mark for what is no Unicode, such as a file's name in an exception."""
    return _unicode(str(redact(text)))


def _unicode(text: str) -> str:
    return text.encode(errors="replace").decode()


def _names(event: EventDraft, **more: object) -> dict[str, object]:
    return {"object": str(event.reference), "event": f"{event.namespace}/{event.name}", "reason": event.reason, **more}


@final
class ComponentRecorder:
    """Records Events as one component; ``EventRecorder.for_component`` makes it.

    Attributes:
        component: The reporting component, such as ``kubelet`` (``reportingComponent``, ``source.component``).
    """

    __slots__ = ("_recorder", "component")

    def __init__(self, recorder: EventRecorder, component: str) -> None:
        """Report through ``recorder``."""
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
        """Record that something happened to an object; as ``EventRecorder.event``, from any thread."""
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
        """Wait until everything recorded so far has been sent or given up; as ``EventRecorder.flush``.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            False if events were still waiting then; they stay queued.

        Raises:
            RuntimeError: If the recorder is not open.
        """
        return await self._recorder.flush(timeout)

    def __repr__(self) -> str:
        return f"<ComponentRecorder {self.component} of {self._recorder!r}>"
