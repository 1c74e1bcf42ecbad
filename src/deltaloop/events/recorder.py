"""The event recorder: takes events from any thread and sends them in one background task.

What becomes of an event is decided in core/correlation.py (count, combine, drop) and core/delivery.py (create, patch,
try again, give up); its fields are in core/event_object.py. Events are for people: recording one never blocks and never
stops the work, and events are dropped, with a line in the log, rather than kept without bound.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Protocol, Self, final

from deltaloop.api.errors import InvalidInputError, MalformedObjectError
from deltaloop.api.kinds import EVENT
from deltaloop.api.redaction import redact
from deltaloop.api.references import ObjectReference, reference_to
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.events.core.correlation import MESSAGE_LIMIT, CorrelatorOptions, EventCorrelator, EventDraft
from deltaloop.events.core.delivery import Delivery, Outcome, Step, Wait
from deltaloop.events.core.event_object import check_event_type, count_patch, event_name, event_object
from deltaloop.pacing.checks import require_positive

_log: Final = logging.getLogger("deltaloop.events")

_QUIET: Final = frozenset({Outcome.SENT, Outcome.EXISTS, Outcome.NAMESPACE_TERMINATING})


class EventClient(Protocol):
    """What the recorder needs of a client."""

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
    """Options of an ``EventRecorder``; the defaults are client-go's.

    Attributes:
        queue_size: Events that may wait to be sent; more are dropped.
        max_tries: Tries for one event that gets no answer.
        retry_delay: Seconds between two tries; the first wait is a random part of it.
        close_timeout: Seconds that leaving the context takes at most.
        correlation: The numbers of counting, combining and the spam filter.
    """

    queue_size: int = 1000
    max_tries: int = 12
    retry_delay: float = 10.0
    close_timeout: float = 5.0
    correlation: CorrelatorOptions = field(default_factory=CorrelatorOptions)

    def __post_init__(self) -> None:
        """Refuse numbers that make no limit."""
        require_positive(
            "EventRecorderOptions",
            queue_size=self.queue_size,
            max_tries=self.max_tries,
            retry_delay=self.retry_delay,
            close_timeout=self.close_timeout,
        )


def _utc_now() -> datetime:
    return datetime.now(UTC)


@final
class EventRecorder:
    """Records events about objects as core/v1 Events. An async context manager; the events are sent while it is open.

    Events recorded before it is entered wait; those after it was left are dropped with a line in the log. Leaving
    makes one try for each event that waits, within ``close_timeout`` seconds in all; cancellation then drops the rest.

    Args:
        client: Client for the Events.
        component: Who reports, such as the controller's name.
        instance: Which one of them, such as the pod's name.
        options: Limits.
        clock: Seconds that never go back, for the limits. In virtual time: the loop's clock.
        wall_clock: Aware time that is written into the events.
        chance: Draws numbers in [0, 1), for the first wait.

    Raises:
        InvalidInputError: If the component is empty.
    """

    def __init__(
        self,
        client: EventClient,
        *,
        component: str,
        instance: str = "",
        options: EventRecorderOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], datetime] = _utc_now,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if not component:
            raise InvalidInputError("EventRecorder needs a component that is not empty: it is who the events come from")
        self.component = component
        self.instance = instance
        self._client = client
        self._options = options if options is not None else EventRecorderOptions()
        self._clock = clock
        self._wall_clock = wall_clock
        self._chance = chance
        self._correlator = EventCorrelator(self._options.correlation)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[EventDraft, float]] = deque()
        self._last_nanoseconds = 0
        self._accepted = 0
        self._finished = 0
        self._dropped = 0
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sender: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        self._progressed = asyncio.Event()
        self._closing = asyncio.Event()

    def event(
        self,
        obj: Resource | ObjectReference | Mapping[str, Any],
        event_type: str,
        reason: str,
        message: str,
        *,
        related: Resource | ObjectReference | Mapping[str, Any] | None = None,
    ) -> None:
        """Record that something happened to an object. Returns at once; from any thread.

        Args:
            obj: The object, or a reference to it. Events about objects without a namespace go to ``default``.
            event_type: ``Normal`` or ``Warning``.
            reason: Why, as one word in CamelCase that a program can switch on.
            message: What happened, for people; secrets that are recognised are hidden, and 1024 characters are kept.
            related: Another object that has to do with it.

        Raises:
            InvalidInputError: If the type is unknown.
            MalformedObjectError: If the object has no name.
        """
        check_event_type(event_type)
        reference = _reference(obj)
        other = _reference(related) if related is not None else None
        shown = str(redact(message))[:MESSAGE_LIMIT]
        at, now = self._wall_clock(), self._clock()
        with self._lock:
            if self._closed or len(self._waiting) >= self._options.queue_size:
                self._dropped += 1
                dropped = self._dropped
            else:
                dropped = 0
                nanoseconds = max(int(at.timestamp() * 1e6) * 1000, self._last_nanoseconds + 1)
                self._last_nanoseconds = nanoseconds
                draft = EventDraft(
                    name=event_name(reference.name, nanoseconds, fallback=str(uuid.uuid4())),
                    namespace=reference.namespace or "default",
                    reference=reference,
                    type=event_type,
                    reason=reason,
                    message=shown,
                    component=self.component,
                    instance=self.instance,
                    first_at=at,
                    last_at=at,
                    related=other,
                )
                self._waiting.append((draft, now))
                self._accepted += 1
                self._wake()
        if dropped:
            why = "the recorder is closed" if self._closed else "the queue is full"
            _log.warning(
                "an event was dropped",
                extra={"object": str(reference), "reason": reason, "why": why, "dropped": dropped},
            )

    async def flush(self, timeout: float) -> bool:
        """Wait until everything recorded so far has been sent or given up.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            False if events were still waiting then; they stay queued.

        Raises:
            RuntimeError: If the recorder is not open.
        """
        if self._sender is None or self._sender.done():
            raise RuntimeError("flush() needs an open recorder: use it inside `async with recorder`")
        target = self._accepted
        try:
            async with asyncio.timeout(timeout):
                while self._finished < target:
                    self._progressed.clear()
                    await self._progressed.wait()
        except TimeoutError:
            return False
        return True

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
        with self._lock:
            self._loop = loop
            self._wake()
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
            left = len(self._waiting)
            if left:
                self._waiting.clear()
                _log.warning("events were not sent before the end", extra={"dropped": left})
        if not self._sender.cancelled():
            self._sender.result()  # a bug of ours is shown, not hidden

    def _wake(self) -> None:
        """Tell the sender that there is work; called with the lock held."""
        if self._loop is None or not self._waiting:
            return
        try:
            self._loop.call_soon_threadsafe(self._more.set)
        except RuntimeError:
            _log.debug("the loop is closed; events stay unsent", extra={"waiting": len(self._waiting)})

    async def _send_all(self) -> None:
        while True:
            self._more.clear()
            while self._waiting:
                draft, now = self._waiting[0]
                await self._send(draft, now)
                with self._lock:
                    self._waiting.popleft()
                self._finished += 1
                self._progressed.set()
            if self._closing.is_set():
                return
            await self._more.wait()

    async def _send(self, draft: EventDraft, now: float) -> None:
        correlated = self._correlator.correlate(draft, now)
        if correlated is None:
            _log.debug("the spam filter dropped an event", extra=_names(draft))
            return
        event = correlated.event
        delivery = Delivery(
            is_update=correlated.is_update, max_tries=self._options.max_tries, retry_delay=self._options.retry_delay
        )
        error: Exception | None = None
        while True:
            effect = delivery.ask()
            if isinstance(effect, Outcome):
                self._log_outcome(effect, event, error)
                return
            if isinstance(effect, Wait):
                await self._wait(effect.delay)
                delivery.waited()
                continue
            try:
                await self._request(effect, event)
            except Exception as caught:  # noqa: BLE001 - the core tells what it means
                error = caught
                delivery.failed(caught, chance=self._chance(), closing=self._closing.is_set())
            else:
                delivery.sent()

    async def _request(self, step: Step, event: EventDraft) -> None:
        if step is Step.CREATE:
            await self._client.create(EVENT, event_object(event), namespace=event.namespace)
        else:
            await self._client.patch(EVENT, event.name, count_patch(event), namespace=event.namespace)

    async def _wait(self, delay: float) -> None:
        try:
            async with asyncio.timeout(delay):
                await self._closing.wait()
        except TimeoutError:
            return

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


def _names(event: EventDraft, **more: object) -> dict[str, object]:
    return {"object": str(event.reference), "event": f"{event.namespace}/{event.name}", "reason": event.reason, **more}


def _reference(obj: Resource | ObjectReference | Mapping[str, Any]) -> ObjectReference:
    reference = _any_reference(obj)
    if not reference.name:
        raise MalformedObjectError("an event needs an object with a name")
    return reference


def _any_reference(obj: Resource | ObjectReference | Mapping[str, Any]) -> ObjectReference:
    if isinstance(obj, ObjectReference):
        return obj
    if isinstance(obj, Resource):
        return reference_to(obj)
    if isinstance(obj, Mapping):
        return reference_to(Resource.from_dict(obj))
    raise InvalidInputError(
        f"an event is about a Resource, an ObjectReference or a mapping, not a {type(obj).__name__}"
    )
