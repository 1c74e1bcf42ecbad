"""Drives core/reflector/: keeps a store, or a queue of deltas, equal to what the server has.

It lists, watches, and begins again after every failure, until it is cancelled. Each decision is the core's; here is who
waits, asks, applies and reports.

Every error is logged and given to ``on_error``. None ends the reflector: not a malformed line, not an object without a
name, not a store that refuses what it is given. The deadline of a stream is the client's affair;
``statistics().last_confirmed_at`` says when the server last gave a sign of life.

Source: client-go tools/cache/reflector.go.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, final, runtime_checkable

from deltaloop._internal.pacing import Wait
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.deltas import Change, DeltaType, Unread
from deltaloop.cache.core.reflector import requests
from deltaloop.cache.core.reflector.effects import CompleteList, ListPage, OpenWatch, OpenWatchList, Probe, Verdict
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.core.reflector.reactions import Reaction
from deltaloop.cache.core.reflector.states import ReflectorPhase
from deltaloop.cache.core.reflector.statistics import ReflectorStatistics
from deltaloop.cache.errors import WatchListStalledError, describe_error
from deltaloop.cache.listwatch import BatchStream, ByteStream, ListerWatcher
from deltaloop.cache.metrics import CacheMetrics, GuardedCacheMetrics
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client.verbs.resource_list import ResourceList

_logger: Final = logging.getLogger("deltaloop.cache")
_EVENTS_PER_TURN: Final = 100
_OBJECTS_PER_TURN: Final = 250
_KEYS_TOLD: Final = 10
_LIMIT_PRECISION: Final = 0.05
_APPLY: Final = Verdict.APPLY
_DELTA_TYPES: Final = {
    EventType.ADDED: DeltaType.ADDED,
    EventType.MODIFIED: DeltaType.UPDATED,
    EventType.DELETED: DeltaType.DELETED,
}
_BEFORE_THE_LIST: Final = (ReflectorPhase.LISTING, ReflectorPhase.RECEIVING)


class ReflectorStore(Protocol):
    """What a reflector fills: a ``DeltaFIFO``, or a ``Store`` for a plain mirror."""

    def add(self, obj: Resource) -> None:
        """An object came into being."""
        ...

    def update(self, obj: Resource) -> None:
        """An object changed."""
        ...

    def delete(self, obj: Resource) -> None:
        """An object went away."""
        ...

    def replace(self, objects: tuple[Resource, ...], resource_version: str, unread: Unread) -> None:
        """Everything that exists is this, and what is ``unread``: that stays as it is known."""
        ...


@runtime_checkable
class ResourceVersionUpdater(Protocol):
    """A store that wants to know how far it has come; both queues and ``Store`` do."""

    def update_resource_version(self, resource_version: str) -> None:
        """Everything up to this version was given to the store."""
        ...


@runtime_checkable
class TurnTaker(Protocol):
    """A store that takes a long list without holding up other tasks; both queues are."""

    async def replace_in_turns(self, objects: tuple[Resource, ...], resource_version: str, unread: Unread) -> None:
        """Everything that exists is this, and what is ``unread``."""
        ...


@final
class Reflector:
    """Mirrors one kind into a store, for as long as it runs."""

    def __init__(
        self,
        lister_watcher: ListerWatcher,
        store: ReflectorStore,
        *,
        name: str = "",
        options: ReflectorOptions | None = None,
        on_error: Callable[[Reaction], object] | None = None,
        room: Callable[[], Awaitable[None] | None] | None = None,
        receive: Callable[[Resource], Resource] | None = None,
        metrics: CacheMetrics | None = None,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Make a reflector that does nothing yet.

        Args:
            lister_watcher: Lists and watches the objects, usually a ``ListWatch``.
            store: What is kept equal to the server: a queue of deltas or a ``Store``.
            name: What to call it in the log; ``str(lister_watcher)`` by default.
            options: Page size, timeouts, backoff and the like.
            on_error: Called with every error and what follows it; what it raises is logged.
            room: Called before the next event is read, so that a store can hold up the stream: what it returns is
                awaited, None says that there is room.
            receive: Called with each object that comes, before anything else is done with it; gives the object that is
                meant from then on, of the same key. It must not raise.
            metrics: Hooks for metrics; None for none.
            random: Draws the numbers in [0, 1) that spread waits and watch timeouts.
        """
        self._errors = ErrorSummaries()
        self.name: str = name or str(lister_watcher)
        self._lister_watcher = lister_watcher
        self._store = store
        self._updater = store if isinstance(store, ResourceVersionUpdater) else None
        self._in_turns = store if isinstance(store, TurnTaker) else None
        self._write_all: Callable[[Sequence[Change[Resource]]], object] = getattr(store, "write_all", None) or partial(
            _write_each, store
        )
        self._core = ReflectorMachine(options)
        self._on_error = on_error
        self._room = room
        self._receive_object = receive
        self._metrics = GuardedCacheMetrics(metrics, self.name)
        self._byte_stream: ByteStream | None = None
        self._began_at = 0.0
        self._events = 0
        self._random = random

    def statistics(self) -> ReflectorStatistics:
        """Return what was done and seen so far; from any thread."""
        stream = self._byte_stream
        if stream is None:
            return self._core.statistics()
        return self._core.statistics(last_byte_at=stream.last_byte_at, pending_bytes=stream.pending_bytes)

    @property
    def last_sync_resource_version(self) -> str:
        """The last version seen, in a list, an event or a bookmark."""
        return self._core.resource_version

    async def run(self) -> None:
        """List and watch until cancelled; cancellation closes the watch and leaves the store as it is."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        while True:
            match self._core.ask(now, random=self._random()):
                case Wait(until):
                    await asyncio.sleep(until - loop.time())
                case ListPage() as effect:
                    await self._list(effect, loop)
                case Probe() as effect:
                    await self._probe(effect, loop)
                case (OpenWatch() | OpenWatchList()) as effect:
                    await self._watch(effect, loop)
            now = loop.time()

    async def _list(self, effect: ListPage, loop: asyncio.AbstractEventLoop) -> None:
        if not effect.options.continue_:
            self._began_at = loop.time()
        try:
            page = await self._received(await self._lister_watcher.list(effect.options))
        except Exception as error:  # noqa: BLE001 - whatever the way to the server raises is reported and answered
            self._report(self._core.list_failed(error, loop.time(), random=self._random()))
            return
        outcome = self._core.listed(page, loop.time(), random=self._random())
        if isinstance(outcome, Reaction):
            self._report(outcome)
        elif outcome is not None:
            await self._replace(outcome, loop)

    async def _received(self, page: ResourceList[Resource]) -> ResourceList[Resource]:
        """Return a page with its objects as ``receive`` gives them; the old ones are let go one by one."""
        receive = self._receive_object
        if receive is None:
            return page
        objects = [*page.items]
        page = replace(page, items=())
        for place, obj in enumerate(objects):
            objects[place] = receive(obj)
            del obj
            if place % _OBJECTS_PER_TURN == _OBJECTS_PER_TURN - 1:
                await asyncio.sleep(0)
        return replace(page, items=tuple(objects))

    async def _replace(self, listed: CompleteList, loop: asyncio.AbstractEventLoop) -> None:
        self._metrics.listed(seconds=loop.time() - self._began_at, items=len(listed.items), streamed=False)
        refusal = await self._replace_with(listed)
        if refusal is not None:
            self._report(self._core.store_failed(refusal, loop.time(), random=self._random()))

    async def _replace_with(self, listed: CompleteList) -> Exception | None:
        if listed.skipped:
            _logger.warning(
                "a list has objects that cannot be read or have no name; what is known of them stays as it is",
                extra={
                    "reflector": self.name,
                    "objects": listed.skipped,
                    "keys": sorted(listed.unread.keys)[:_KEYS_TOLD],
                    "of_unknown_name": listed.unread.is_any,
                    "error": None if listed.first_error is None else describe_error(listed.first_error),
                },
            )
        try:
            if self._in_turns is not None:
                await self._in_turns.replace_in_turns(listed.items, listed.resource_version, listed.unread)
            else:
                self._store.replace(listed.items, listed.resource_version, listed.unread)
        except Exception as error:  # noqa: BLE001 - a store may raise anything; the answer is to list again
            return error
        _logger.debug(
            "listed",
            extra={
                "reflector": self.name,
                "objects": len(listed.items),
                "resource_version": listed.resource_version,
            },
        )
        return None

    async def _probe(self, effect: Probe, loop: asyncio.AbstractEventLoop) -> None:
        try:
            page = await self._lister_watcher.list(effect.options)
        except Exception as error:  # noqa: BLE001 - whatever the way to the server raises is reported and answered
            self._report(self._core.probe_failed(error, loop.time(), random=self._random()))
            return
        reaction = self._core.probed(page.resource_version, loop.time())
        if reaction is not None:
            self._report(reaction)

    async def _watch(self, effect: OpenWatch | OpenWatchList, loop: asyncio.AbstractEventLoop) -> None:
        core = self._core
        refusal: Exception | None = None
        self._began_at = loop.time()
        self._events = 0
        try:
            async with self._open(effect, loop) as events:
                if isinstance(effect, OpenWatchList):
                    core.watch_list_opened(loop.time())
                else:
                    core.watch_opened(loop.time())
                async with self._looking(loop):
                    if core.phase is ReflectorPhase.RECEIVING:
                        refusal = await self._receive(events, loop)
                    if refusal is None and core.phase is ReflectorPhase.STREAMING:
                        refusal = await self._stream(events, loop)
        except _WentBackError:
            return  # it is reported already
        except Exception as error:  # noqa: BLE001 - whatever the way to the server raises is reported and answered
            if refusal is None:
                failed = core.watch_list_failed if core.phase in _BEFORE_THE_LIST else core.watch_failed
                self._report(failed(error, loop.time(), random=self._random()))
                return
        if refusal is not None:
            self._report(core.store_failed(refusal, loop.time(), random=self._random()))
            return
        if core.phase is ReflectorPhase.RECEIVING:
            self._report(core.watch_list_ended(loop.time(), random=self._random()))
            return
        reaction = core.watch_ended(loop.time(), random=self._random())
        if reaction is not None:
            self._report(reaction)

    @asynccontextmanager
    async def _looking(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
        """Ask for the server's version while a stream is read, if the core wants it.

        Raises:
            _WentBackError: If the version went back, instead of what reading the stream raises.
        """
        look_at = self._core.look_at
        if look_at is None:
            yield
            return
        looks: list[asyncio.Task[bool]] = []

        def begin() -> None:
            if self._core.look_at is not None:  # otherwise the list has become whole meanwhile
                looks.append(loop.create_task(self._look(loop, reading)))

        try:
            async with asyncio.timeout(None) as reading:
                timer = loop.call_at(look_at, begin)
                try:
                    yield
                finally:
                    timer.cancel()
                    for look in looks:
                        look.cancel()
                        await asyncio.wait(looks)
        except Exception:
            if not _went_back(looks):
                raise
        if _went_back(looks):
            raise _WentBackError

    async def _look(self, loop: asyncio.AbstractEventLoop, reading: asyncio.Timeout) -> bool:
        """Ask for the server's version; if it went back, report that, end the reading and return True."""
        try:
            page = await self._lister_watcher.list(requests.PROBE)
        except Exception as error:  # noqa: BLE001 - the stream itself shows whether the server is there
            if self._core.look_at is not None:
                self._core.look_failed()
            _logger.debug(
                "cannot read the server's version", extra={"reflector": self.name, "error": describe_error(error)}
            )
            return False
        if self._core.look_at is None:
            return False
        reaction = self._core.looked(page.resource_version, loop.time())
        if reaction is None:
            return False
        self._report(reaction)
        reading.reschedule(loop.time())
        return True

    @asynccontextmanager
    async def _open(
        self, effect: OpenWatch | OpenWatchList, loop: asyncio.AbstractEventLoop
    ) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        async with self._lister_watcher.watch(effect.options) as events:
            self._metrics.watch_opened()
            self._byte_stream = events if isinstance(events, ByteStream) else None
            try:
                yield events
            finally:
                if self._byte_stream is not None:
                    self._core.saw_bytes(self._byte_stream.last_byte_at)
                    self._byte_stream = None
                self._metrics.watch_ended(seconds=loop.time() - self._began_at, events=self._events)

    async def _receive(self, events: AsyncIterator[WatchEvent], loop: asyncio.AbstractEventLoop) -> Exception | None:
        """Read the events of a streamed list, until it is whole or the stream ends; return what a store refused."""
        limit = asyncio.timeout_at(self._core.give_up_at)
        try:
            async with limit:
                outcome = await self._collect(events, loop, limit)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise WatchListStalledError("the streamed list has brought no more of the list for too long") from error
        if outcome is None:
            return None
        self._metrics.listed(seconds=loop.time() - self._began_at, items=len(outcome.items), streamed=True)
        return await self._replace_with(outcome)

    async def _collect(
        self, events: AsyncIterator[WatchEvent], loop: asyncio.AbstractEventLoop, limit: asyncio.Timeout
    ) -> CompleteList | None:
        handled = 0
        until = self._core.give_up_at
        receive = self._receive_object
        async for event in events:
            if receive is not None and event.type is not EventType.BOOKMARK:
                event = WatchEvent(event.type, receive(event.object))  # noqa: PLW2901 - the other one is not to be seen
            outcome = self._core.initial_event(event, loop.time())
            if isinstance(outcome, CompleteList):
                return outcome
            if outcome is Verdict.SKIP:
                self._warn_of_nameless(event)
            if self._core.give_up_at > until + _LIMIT_PRECISION:  # a timer for each of 100 000 events would cost most
                until = self._core.give_up_at
                limit.reschedule(until)
            handled += 1
            if handled % _EVENTS_PER_TURN == 0:
                await asyncio.sleep(0)
        return None

    async def _stream(self, events: AsyncIterator[WatchEvent], loop: asyncio.AbstractEventLoop) -> Exception | None:
        """Read events until the stream ends; return what a store refused."""
        handled, room = 0, self._room
        is_free = room is None  # not known before it is asked
        next_batch = events.batch if isinstance(events, BatchStream) else partial(_next_of, events)
        while batch := await next_batch():
            now = loop.time()
            place = 0
            while place < len(batch):
                together = batch[place : place + (_EVENTS_PER_TURN - handled if is_free else 1)]
                changes, refusal = self._handle(together, now)
                if refusal is not None:
                    return refusal
                place += changes
                handled += changes
                if handled == _EVENTS_PER_TURN:
                    handled = 0
                    await asyncio.sleep(0)  # a stream that is always ready must not starve other tasks
                if room is not None:
                    until_room = room()
                    is_free = until_room is None
                    if until_room is not None:
                        await until_room
        return None

    def _handle(self, events: Sequence[WatchEvent], now: float) -> tuple[int, Exception | None]:
        """Give the first events to the store; return how many were handled, and what the store refused."""
        taken = self._core.watch_events(events, now)
        verdict = _APPLY if taken else self._core.watch_event(events[0], now)
        handled = taken or 1
        changed = events[:handled] if handled < len(events) else events
        self._events += handled
        if self._metrics.counts:
            for event in changed:
                self._metrics.event(event_type=event.type.value, size=len(event.object.raw))
        if verdict is Verdict.SKIP:
            self._warn_of_nameless(changed[0])
            return 1, None
        if verdict is _APPLY:
            receive = self._receive_object
            try:
                self._write_all(
                    [
                        (
                            _DELTA_TYPES[event.type],
                            event.object if receive is None else receive(event.object),
                            event.object.resource_version if taken else "",
                        )
                        for event in changed
                    ]
                )
            except Exception as error:  # noqa: BLE001 - a store may raise anything; the answer is to list again
                return handled, error
        version = self._core.resource_version
        if version and not taken and self._updater is not None:
            self._updater.update_resource_version(version)
        return handled, None

    def _warn_of_nameless(self, event: WatchEvent) -> None:
        _logger.warning(
            "a watch event carries an object without a name; it is passed over",
            extra={"reflector": self.name, "type": event.type.value},
        )

    def _report(self, reaction: Reaction) -> None:
        self._metrics.failed(operation=reaction.operation.value, error=type(reaction.error).__name__)
        _logger.log(
            logging.INFO if reaction.delay == 0 else logging.WARNING,  # what is answered at once is expected
            "list or watch failed",
            extra={
                "reflector": self.name,
                "operation": reaction.operation.value,
                "error": describe_error(reaction.error),
                "recovery": reaction.recovery.value,
                "delay": round(reaction.delay, 3),
                "retry_after": reaction.error.retry_after if isinstance(reaction.error, ApiError) else None,
            },
        )
        if self._on_error is None:
            return
        try:
            self._on_error(reaction)
        except Exception as error:  # noqa: BLE001 - it is logged; the reflector goes on
            message, extra = "the error handler of a reflector raised", {"reflector": self.name}
            self._errors.log(_logger, logging.ERROR, message, error, now=time.monotonic(), extra=extra)

    def __repr__(self) -> str:
        return f"<Reflector {self.name} {self._core.phase} at {self.last_sync_resource_version or '-'}>"


class _WentBackError(Exception):
    """The server's version went back while a stream was open."""


def _went_back(looks: Sequence[asyncio.Task[bool]]) -> bool:
    return any(look.done() and not look.cancelled() and look.result() for look in looks)


def _write_each(store: ReflectorStore, changes: Sequence[Change[Resource]]) -> None:
    """Write changes to a store that takes one at a time, and the versions that they reach."""
    writes = {DeltaType.ADDED: store.add, DeltaType.UPDATED: store.update, DeltaType.DELETED: store.delete}
    updater = store if isinstance(store, ResourceVersionUpdater) else None
    for delta_type, obj, version in changes:
        writes[delta_type](obj)
        if version and updater is not None:
            updater.update_resource_version(version)


async def _next_of(events: AsyncIterator[WatchEvent]) -> Sequence[WatchEvent]:
    """Return the next event as a batch of one, or none at the end."""
    event = await anext(events, None)
    return () if event is None else (event,)
