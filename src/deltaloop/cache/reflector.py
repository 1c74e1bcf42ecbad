"""Mirror the server's objects of one kind into a store or a queue of deltas; errors never end the reflector.

Source: client-go tools/cache/reflector.go.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from msgspec.structs import replace

from deltaloop._internal.pacing import Wait
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.deltas import Change, DeltaType
from deltaloop.cache.core.reflector import effects
from deltaloop.cache.core.reflector.effects import CompleteList, ListPage, OpenWatch, OpenWatchList, Probe, Verdict
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.core.reflector.reactions import Reaction
from deltaloop.cache.core.reflector.states import ReflectorPhase
from deltaloop.cache.core.reflector.statistics import ReflectorStatistics
from deltaloop.cache.errors import describe_error
from deltaloop.cache.listwatch import ListerWatcher, ListWatch, shard_selector_of
from deltaloop.cache.metrics import CacheMetrics, GuardedCacheMetrics
from deltaloop.cache.reflector_options import ReflectorOptions

if TYPE_CHECKING:
    from deltaloop.api.shard_selector import ShardFollower, ShardSelector
    from deltaloop.cache.interfaces import BatchStream, ByteStream, ReflectorStore, ResourceVersionUpdater, TurnTaker
    from deltaloop.client.verbs.resource_list import ResourceList

_logger: Final = logging.getLogger("deltaloop.cache")
_EVENTS_PER_TURN: Final = 100
_OBJECTS_PER_TURN: Final = 250
_KEYS_TOLD: Final = 10
_LIMIT_PRECISION: Final = 0.05
_BOOKMARK: Final = EventType.BOOKMARK
_DELTA_TYPES: Final = {
    EventType.ADDED: DeltaType.ADDED,
    EventType.MODIFIED: DeltaType.UPDATED,
    EventType.DELETED: DeltaType.DELETED,
}
Batches: TypeAlias = "Callable[[], Awaitable[Sequence[WatchEvent]]]"
_BEFORE_THE_LIST: Final = (ReflectorPhase.LISTING, ReflectorPhase.RECEIVING)


@final
class Reflector:
    """Mirror one kind into a store until canceled."""

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
        """Create a reflector. Call ``run`` to start it.

        Args:
            lister_watcher: Source of the objects, usually a ``ListWatch``.
            store: Target: a queue of deltas or a ``Store``.
            name: Name in the log, by default ``str(lister_watcher)``.
            options: Page size, timeouts, backoff and similar settings.
            on_error: Function called with each error and its recovery. Its exceptions are logged.
            room: Function for backpressure, called before each read from the stream. Its result is awaited unless it is
                None.
            receive: Function applied to each received object first. It must return an object with the same key, and
                must not raise.
            metrics: Hooks for metrics, or None.
            random: Function that returns random numbers in [0, 1) for the jitter of delays and watch timeouts.
        """
        self._errors = ErrorSummaries()
        self.name: str = name or str(lister_watcher)
        self._lister_watcher = lister_watcher
        self._store = store
        # isinstance with a protocol costs a hundred calls.
        self._updater: ResourceVersionUpdater | None = _having(store, "update_resource_version")
        self._in_turns: TurnTaker | None = _having(store, "replace_in_turns")
        self._write_all: Callable[[Sequence[Change[Resource]]], object] = getattr(store, "write_all", None) or partial(
            _write_each, store
        )
        self._core = ReflectorMachine(options)
        self._on_error = on_error
        self._room = room
        self._receive_object = receive
        shard = shard_selector_of(lister_watcher)
        self._selects = None if shard is None else shard.matches  # servers without KEP-5866 send all objects
        self._follower = None if shard is None else shard.follower
        self._lists_all = True
        self._is_old: Callable[[Resource], bool] | None = None
        self._wanted: tuple[ShardSelector, asyncio.Future[None]] | None = None
        self._reading: asyncio.Timeout | None = None
        self._metrics = GuardedCacheMetrics(metrics, self.name)
        self._byte_stream: ByteStream | None = None
        self._began_at = 0.0
        self._events = 0
        self._random = random

    def statistics(self) -> ReflectorStatistics:
        """Return the statistics from any thread."""
        stream = self._byte_stream
        if stream is None:
            return self._core.statistics()
        return self._core.statistics(last_byte_at=stream.last_byte_at, pending_bytes=stream.pending_bytes)

    @property
    def last_sync_resource_version(self) -> str:
        """Last version received in a list, event or bookmark."""
        return self._core.resource_version

    async def run(self) -> None:
        """List and watch until canceled.

        A cancel closes the watch and leaves the store unchanged.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        while True:
            if self._wanted is not None:
                await self._change_shard(*self._wanted)
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

    async def change_shard(self, shard: ShardSelector) -> None:
        """Continue with another shard, of which only new ranges are listed.

        It waits until they are in the store. The source must be a ``ListWatch`` with a shard. Other objects stay in the
        store.

        Raises:
            RuntimeError: If a later call replaces the shard.
        """
        if self._wanted is not None and not self._wanted[1].done():
            self._wanted[1].set_exception(RuntimeError(f"{self.name} changed to another shard"))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wanted = shard, done
        if self._reading is not None:
            self._reading.reschedule(asyncio.get_running_loop().time())
            self._reading = None  # a timeout that expires cannot be changed
        await done

    async def _change_shard(self, shard: ShardSelector, done: asyncio.Future[None]) -> None:
        source, core = self._lister_watcher, self._core
        assert isinstance(source, ListWatch)
        assert source.shard_selector is not None
        gained = shard.without(source.shard_selector)
        if gained is not None and not core.will_list:
            try:
                objects, version = await self._list_ranges(source, gained)
            except Exception as error:  # noqa: BLE001 - a source may raise any exception; a list of all ranges follows
                _logger.warning(
                    "cannot list new ranges, listing the shard again",
                    extra={"reflector": self.name, "error": describe_error(error)},
                )
                gained = None
                core.list_again()
            else:
                known, newest = gained.matches, Resource.from_dict({"metadata": {"resourceVersion": version}}).version
                # The watch continues at an older version, and repeats changes that the list contains.
                self._is_old = lambda obj: 0 < obj.version <= newest and known(obj)
                self._write_all([(DeltaType.ADDED, obj, "") for obj in objects])
        elif core.will_list:
            core.list_again()
        source.shard_selector, self._selects = shard, shard.matches
        if self._wanted is not None and self._wanted[1] is done:
            self._wanted = None
        if not done.done():
            done.set_result(None)

    async def _list_ranges(self, source: ListWatch, gained: ShardSelector) -> tuple[list[Resource], str]:
        before, source.shard_selector, self._selects = source.shard_selector, gained, gained.matches
        self._lists_all = False
        try:
            options = effects.first_page("", page_size=self._core.options.page_size, server_pages=True)
            found: list[Resource] = []
            while True:
                page = await self._received(await source.list(options))
                found += page.items
                if not page.continue_:
                    return found, page.resource_version
                options = options.replace(continue_=page.continue_, resource_version="")
        finally:
            source.shard_selector, self._selects = before, None if before is None else before.matches
            self._lists_all = True

    async def _list(self, effect: ListPage, loop: asyncio.AbstractEventLoop) -> None:
        if not effect.options.continue_:
            self._began_at = loop.time()
        try:
            page = await self._received(await self._lister_watcher.list(effect.options))
        except Exception as error:  # noqa: BLE001 - a source may raise any exception; reported
            self._report(self._core.list_failed(error, loop.time(), random=self._random()))
            return
        outcome = self._core.listed(page, loop.time(), random=self._random())
        if isinstance(outcome, Reaction):
            self._report(outcome)
        elif outcome is not None:
            await self._replace(outcome, loop)

    async def _received(self, page: ResourceList[Resource]) -> ResourceList[Resource]:
        """Select the shard of a page, apply ``receive`` to its objects, and release the old objects in turn."""
        receive = self._receive_object
        if self._selects is not None:
            page = replace(page, items=tuple(filter(self._stores, page.items)))
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

    def _stores(self, obj: Resource) -> bool:
        selected = self._selects is None or self._selects(obj)
        if self._follower is None:
            return selected
        return self._follower.listed(obj, selected=selected, whole=self._lists_all)

    async def _replace(self, listed: CompleteList, loop: asyncio.AbstractEventLoop) -> None:
        self._metrics.listed(seconds=loop.time() - self._began_at, items=len(listed.items), streamed=False)
        refusal = await self._replace_with(listed)
        if refusal is not None:
            self._report(self._core.store_failed(refusal, loop.time(), random=self._random()))

    async def _replace_with(self, listed: CompleteList) -> Exception | None:
        self._is_old = None
        if self._follower is not None:
            self._follower.replaced({obj.key for obj in listed.items} | listed.unread.keys)
        if listed.skipped:
            _logger.warning(
                "list contains unreadable objects, keeping their cached state",
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
        except Exception as error:  # noqa: BLE001 - a store may raise any exception; the reflector lists again
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
        except Exception as error:  # noqa: BLE001 - a source may raise any exception; reported
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
                stream: BatchStream | None = _having(events, "batch")
                batches: Batches = partial(_next_of, events) if stream is None else stream.batch
                rest: Sequence[WatchEvent] = ()
                async with self._looking(loop):
                    if core.phase is ReflectorPhase.RECEIVING:
                        refusal, rest = await self._receive(batches, loop)
                    if refusal is None and core.phase is ReflectorPhase.STREAMING:
                        await self._stream_shard(stream, batches, rest, loop)
        except _WentBackError:
            return  # already reported
        except _StoreRefusedError as error:
            refusal = error.cause
        except Exception as error:  # noqa: BLE001 - a source may raise any exception; reported
            if refusal is None:
                failed = core.watch_list_failed if core.phase in _BEFORE_THE_LIST else core.watch_failed
                self._report(failed(error, loop.time(), random=self._random()))
                return
        if refusal is not None:
            self._report(core.store_failed(refusal, loop.time(), random=self._random()))
            return
        if self._wanted is not None and core.phase is ReflectorPhase.STREAMING:
            core.watch_interrupted()
            return
        if core.phase is ReflectorPhase.RECEIVING:
            self._report(core.watch_list_ended(loop.time(), random=self._random()))
            return
        reaction = core.watch_ended(loop.time(), random=self._random())
        if reaction is not None:
            self._report(reaction)

    @asynccontextmanager
    async def _looking(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
        """Probe the server's version while a stream is open, if the state machine requests it."""
        look_at = self._core.look_at
        if look_at is None:
            yield
            return
        looks: list[asyncio.Task[bool]] = []

        def begin() -> None:
            if self._core.look_at is not None:  # otherwise the list is already complete
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
        """Probe the server's version. If it went back, report that, stop reading and return True."""
        try:
            page = await self._lister_watcher.list(effects.PROBE)
        except Exception as error:  # noqa: BLE001 - the stream itself shows whether the server is reachable
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
            self._byte_stream = _having(events, "last_byte_at")
            try:
                yield events
            finally:
                if self._byte_stream is not None:
                    self._core.saw_bytes(self._byte_stream.last_byte_at)
                    self._byte_stream = None
                self._metrics.watch_ended(seconds=loop.time() - self._began_at, events=self._events)

    async def _receive(
        self, batches: Batches, loop: asyncio.AbstractEventLoop
    ) -> tuple[Exception | None, Sequence[WatchEvent]]:
        """Read a streamed list until it is complete or the stream ends."""
        limit = asyncio.timeout_at(self._core.give_up_at)
        try:
            async with limit:
                outcome, rest = await self._collect(batches, loop, limit)
        except TimeoutError as error:
            if not limit.expired():
                raise
            from deltaloop.cache.core.reflector.errors import WatchListStalledError

            raise WatchListStalledError("the streamed list made no progress for too long") from error
        if outcome is None:
            return None, ()
        self._metrics.listed(seconds=loop.time() - self._began_at, items=len(outcome.items), streamed=True)
        return await self._replace_with(outcome), rest

    async def _collect(
        self, batches: Batches, loop: asyncio.AbstractEventLoop, limit: asyncio.Timeout
    ) -> tuple[CompleteList | None, Sequence[WatchEvent]]:
        handled = 0
        core, until = self._core, self._core.give_up_at
        receive, selects = self._receive_object, None if self._selects is None else self._stores
        while batch := await batches():
            now = loop.time()
            taken = core.initial_events(batch, now) if receive is None and selects is None else 0
            for place, event in enumerate(batch[taken:], taken + 1):
                is_object = event.type is not _BOOKMARK
                if is_object and selects is not None and not selects(event.object):
                    outcome: Verdict | CompleteList = core.other_shard_event(now)
                else:
                    if is_object and receive is not None:
                        event = WatchEvent(event.type, receive(event.object))  # noqa: PLW2901 - releases the received object
                    outcome = core.initial_event(event, now)
                if outcome == "hold":
                    continue
                if isinstance(outcome, CompleteList):
                    return outcome, batch[place:]
                if outcome == "skip":
                    self._warn_of_nameless(event)
            if core.give_up_at > until + _LIMIT_PRECISION:  # a timer for each event would be expensive
                until = core.give_up_at
                limit.reschedule(until)
            handled += len(batch)
            if handled >= _EVENTS_PER_TURN:
                handled = 0
                await asyncio.sleep(0)
        return None, ()

    async def _stream_shard(
        self,
        stream: BatchStream | None,
        batches: Batches,
        rest: Sequence[WatchEvent],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Read events until the stream ends or ``change_shard`` is called."""
        if self._selects is None:
            await self._stream(stream, batches, rest, loop)
            return
        reading = asyncio.timeout_at(None if self._wanted is None else loop.time())
        try:
            async with reading:
                self._reading = reading if self._wanted is None else None
                await self._stream(stream, batches, rest, loop)
        except TimeoutError:
            if not reading.expired():
                raise
        finally:
            self._reading = None

    async def _stream(
        self,
        stream: BatchStream | None,
        batches: Batches,
        batch: Sequence[WatchEvent],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Handle a batch, then read events until the stream ends."""
        handled, room = 0, self._room
        is_free = room is None  # None means no limit; otherwise room must be called first
        if stream is not None:

            def arrived() -> bool:
                if room is not None and (waiting := room()) is not None:
                    if (close := getattr(waiting, "close", None)) is not None:
                        close()
                    return False
                now, place, batch = loop.time(), 0, stream.received()
                number = len(batch)
                while place < number:
                    place += self._handle(batch[place:] if place else batch, now)
                return number < _EVENTS_PER_TURN

            stream.consume = arrived
        while batch := batch or await batches():
            now = loop.time()
            place = 0
            while place < len(batch):
                changes = self._handle(batch[place : place + (_EVENTS_PER_TURN - handled if is_free else 1)], now)
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
            batch = ()

    def _handle(self, events: Sequence[WatchEvent], now: float) -> int:
        """Pass the first events to the store, and return their number, or raise _StoreRefusedError."""
        taken = self._core.watch_events(events, now)
        verdict = "apply" if taken else self._core.watch_event(events[0], now)
        handled = taken or 1
        changed = events[:handled] if handled < len(events) else events
        self._events += handled
        if self._metrics.counts:
            for event in changed:
                self._metrics.event(event_type=event.type.value, size=len(event.object.raw))
        if verdict == "skip":
            self._warn_of_nameless(changed[0])
            return 1
        if verdict == "apply":
            receive, selects, is_old = self._receive_object, self._selects, self._is_old
            if selects is not None and self._follower is not None:
                changed, selects = self._followed(changed, self._follower, selects), None
            elif is_old is not None:
                changed = [event for event in changed if not is_old(event.object)]
            try:
                self._write_all(
                    [
                        (
                            _DELTA_TYPES[event.type],
                            event.object if receive is None else receive(event.object),
                            event.object.resource_version if taken else "",
                        )
                        for event in changed
                        if selects is None or selects(event.object)
                    ]
                )
            except Exception as error:
                raise _StoreRefusedError(error) from error
        version = self._core.resource_version
        if version and self._updater is not None and (not taken or self._selects is not None):
            self._updater.update_resource_version(version)
        return handled

    def _followed(
        self, events: Sequence[WatchEvent], follower: ShardFollower, selects: Callable[[Resource], bool]
    ) -> list[WatchEvent]:
        is_old = self._is_old
        found: list[WatchEvent] = []
        for event in events:
            selected = selects(event.object) and (is_old is None or not is_old(event.object))
            followed = follower.follow(event, selected=selected)
            if followed is not None:
                found.append(followed)
        return found

    def _warn_of_nameless(self, event: WatchEvent) -> None:
        _logger.warning(
            "ignoring a watch event with an object without a name",
            extra={"reflector": self.name, "type": event.type.value},
        )

    def _report(self, reaction: Reaction) -> None:
        self._metrics.failed(operation=reaction.operation.value, error=type(reaction.error).__name__)
        _logger.log(
            logging.INFO if reaction.delay == 0 else logging.WARNING,  # errors with an immediate recovery are expected
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
        except Exception as error:  # noqa: BLE001 - logged, so that the reflector continues
            message, extra = "error handler of a reflector raised an exception", {"reflector": self.name}
            self._errors.log(_logger, logging.ERROR, message, error, now=time.monotonic(), extra=extra)

    def __repr__(self) -> str:
        return f"<Reflector {self.name} {self._core.phase} at {self.last_sync_resource_version or '-'}>"


class _StoreRefusedError(Exception):
    """The store raised an exception (``cause``)."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


class _WentBackError(Exception):
    """The server went back to a lower version while a stream was open."""


def _went_back(looks: Sequence[asyncio.Task[bool]]) -> bool:
    return any(look.done() and not look.cancelled() and look.result() for look in looks)


def _having(part: Any, method: str) -> Any:
    """Return an object that has an optional method, otherwise None."""
    return part if hasattr(part, method) else None


def _write_each(store: ReflectorStore, changes: Sequence[Change[Resource]]) -> None:
    """Write changes one by one to a store without ``write_all``, with their versions."""
    writes = {DeltaType.ADDED: store.add, DeltaType.UPDATED: store.update, DeltaType.DELETED: store.delete}
    updater: ResourceVersionUpdater | None = _having(store, "update_resource_version")
    for delta_type, obj, version in changes:
        writes[delta_type](obj)
        if version and updater is not None:
            updater.update_resource_version(version)


async def _next_of(events: AsyncIterator[WatchEvent]) -> Sequence[WatchEvent]:
    """Return the next event as a batch of one, or an empty batch at the end."""
    event = await anext(events, None)
    return () if event is None else (event,)
