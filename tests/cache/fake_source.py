"""A hand-written API server for one kind, in memory, with faults: what ``FakeControllerSource`` is upstream.

It keeps objects, a version that grows with each change, and the events of the changes. Lists page as a real server's
do; watches begin at a version, and one that is older than ``compact`` allows is answered with 410.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, Status, StatusCause, StatusDetails, error_from_status
from deltaloop.api.watch_event import INITIAL_EVENTS_END, EventType, WatchEvent
from deltaloop.cache.listwatch import ListerWatcher
from deltaloop.client.errors import StreamEndedError, TransportError
from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemError
from tests.cache.objects import pod


def api_error(code: int, reason: str = "", *, retry_after: float | None = None, message: str = "") -> ApiError:
    """Make the exception of a Status."""
    return error_from_status(Status(code=code, reason=reason, message=message), retry_after=retry_after)


def expired() -> ApiError:
    """Make a 410."""
    return api_error(410, "Expired", message="too old resource version")


def too_large() -> ApiError:
    """Make the answer to a version from the future."""
    causes = (StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version"),)
    return error_from_status(Status(code=504, reason="Timeout", details=StatusDetails(causes=causes)))


def refused() -> TransportError:
    """Make a refused connection."""
    return TransportError("nothing listens", method="GET", path="/api/v1/pods", refused=True)


def broken() -> StreamEndedError:
    """Make a stream that breaks off."""
    return StreamEndedError("the stream broke off", method="GET", path="/api/v1/pods")


def initial_events_end(version: int | str, *, says: str = "true") -> WatchEvent:
    """Make the bookmark that ends the first part of a streamed list."""
    annotations = {INITIAL_EVENTS_END: says}
    metadata = {"resourceVersion": str(version), "annotations": annotations}
    return WatchEvent(EventType.BOOKMARK, Resource.from_dict({"metadata": metadata}))


class Stream:
    """The events of a watch, which can be read in batches."""

    def __init__(self, events: AsyncIterator[WatchEvent], waiting: asyncio.Queue[WatchEvent | End]) -> None:
        self._events = events
        self._waiting = waiting
        self.consume: Callable[[], bool] | None = None  # never called: a task reads all events

    def received(self) -> list[WatchEvent]:
        """Return nothing, because events arrive only for a task that waits."""
        return []

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self

    async def __anext__(self) -> WatchEvent:
        return await anext(self._events)

    async def batch(self) -> list[WatchEvent]:
        """Return what has come, 100 at most, as a client's stream does; what is no event is left for the next time."""
        first = await anext(self._events, None)
        if first is None:
            return []
        found, held = [first], list[WatchEvent | End]()
        while not self._waiting.empty() and len(held) < 99:
            held.append(self._waiting.get_nowait())
        after = next((place for place, item in enumerate(held) if not isinstance(item, WatchEvent)), len(held))
        found += [item for item in held[:after] if isinstance(item, WatchEvent)]
        left = [*held[after:], *(self._waiting.get_nowait() for _ in range(self._waiting.qsize()))]
        for item in left:
            self._waiting.put_nowait(item)
        return found


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    at: float
    verb: str
    options: ListOptions

    @property
    def version(self) -> str:
        """The resource version asked for; "continue" for later pages."""
        return "continue" if self.options.continue_ else self.options.resource_version


End = None | Exception


@dataclass
class FakeSource(ListerWatcher):
    """The server. ``list_faults`` and ``watch_faults`` answer the next requests; None in them lets it answer itself."""

    version: int = 10
    serves_from_cache: bool = True
    expires_at_start: bool = False
    objects: dict[str, Resource] = field(default_factory=dict[str, Resource])
    events: list[tuple[int, WatchEvent]] = field(default_factory=list[tuple[int, WatchEvent]])
    asked: list[Asked] = field(default_factory=list[Asked])
    list_faults: deque[Exception | None] = field(default_factory=deque[Exception | None])
    watch_faults: deque[Exception | None] = field(default_factory=deque[Exception | None])
    oldest: int = 0
    list_delay: float = 0.0
    streams: list[asyncio.Queue[WatchEvent | End]] = field(default_factory=list[asyncio.Queue[WatchEvent | End]])
    opened: int = 0
    closed: int = 0
    snapshots: dict[str, tuple[int, tuple[Resource, ...]]] = field(
        default_factory=dict[str, tuple[int, tuple[Resource, ...]]]
    )
    offers_watch_list: bool = True
    holds_back_after: int | None = None  # streamed lists bring so many objects, and then nothing more
    before_page: Callable[[ListOptions], None] | None = None
    unreadable: dict[str, str | None] = field(default_factory=dict[str, "str | None"])  # name to the key that is seen

    def __str__(self) -> str:
        return "v1/Pod"

    # Changes

    def put(self, name: str, *, silent: bool = False, node: str | None = None, uid: str | None = None) -> Resource:
        """Create or change an object; silently, no watch will ever hear of it."""
        self.version += 1
        known = self.objects.get(name)
        identity = uid or (known.uid if known else f"{name}-{self.version}")
        obj = pod(name, self.version, node=node, uid=identity)
        self.objects[name] = obj
        self._event(EventType.MODIFIED if known else EventType.ADDED, obj, silent=silent)
        return obj

    def remove(self, name: str, *, silent: bool = False) -> None:
        """Delete an object."""
        self.version += 1
        last = self.objects.pop(name)
        self._event(EventType.DELETED, pod(name, self.version, uid=last.uid), silent=silent)

    def bookmark(self) -> None:
        """Tell all watches the version."""
        obj = Resource.from_dict({"metadata": {"resourceVersion": str(self.version)}})
        self._send(WatchEvent(EventType.BOOKMARK, obj))

    def send(self, event: WatchEvent) -> None:
        """Tell all watches something out of the ordinary."""
        self._send(event)

    def _event(self, event_type: EventType, obj: Resource, *, silent: bool) -> None:
        if silent:
            return
        event = WatchEvent(event_type, obj)
        self.events.append((self.version, event))
        self._send(event)

    def _send(self, item: WatchEvent | End) -> None:
        for stream in self.streams:
            stream.put_nowait(item)

    # Faults

    def end_watches(self) -> None:
        """End all streams in order."""
        self._send(None)

    def break_watches(self, error: Exception) -> None:
        """End all streams with an error."""
        self._send(error)

    def compact(self) -> None:
        """Forget the events: what is older than now is 410, and so are the pages of lists begun before."""
        self.oldest = self.version
        self.events.clear()
        self.snapshots.clear()

    # Requests

    def versions(self, verb: str) -> list[str]:
        """Return the versions asked for, in order."""
        return [asked.version for asked in self.asked if asked.verb == verb]

    def times(self, verb: str) -> list[float]:
        """Return when was asked."""
        return [asked.at for asked in self.asked if asked.verb == verb]

    async def list(self, options: ListOptions) -> ResourceList[Resource]:
        """Return one page."""
        self._log("list", options)
        if self.list_delay:
            await asyncio.sleep(self.list_delay)
        if self.before_page is not None:
            self.before_page(options)
        if self.list_faults and (fault := self.list_faults.popleft()) is not None:
            raise fault
        if options.continue_:
            return self._later_page(options)
        wanted = options.resource_version
        if wanted not in {"", "0"} and int(wanted) > self.version:
            raise too_large()
        items = tuple(self.objects.values())
        if not options.limit or len(items) <= options.limit or (wanted == "0" and self.serves_from_cache):
            broken = [name for name in self.objects if name in self.unreadable]
            errors = tuple(UnreadableItemError(name, key=self.unreadable[name]) for name in broken)
            readable = tuple(item for item in items if item.name not in broken)
            return ResourceList(readable, str(self.version), unreadable=errors)
        return self._page(self.version, items, 0, options.limit)

    def _later_page(self, options: ListOptions) -> ResourceList[Resource]:
        token, _, offset = options.continue_.partition(":")
        if token not in self.snapshots:
            raise expired()
        version, items = self.snapshots[token]
        return self._page(version, items, int(offset), options.limit)

    def _page(self, version: int, items: tuple[Resource, ...], offset: int, limit: int) -> ResourceList[Resource]:
        self.snapshots[str(version)] = (version, items)
        end = offset + limit
        more = f"{version}:{end}" if end < len(items) else ""
        return ResourceList(items[offset:end], str(version), more)

    def watch(self, options: ListOptions) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch."""
        return self._watch(options)

    @asynccontextmanager
    async def _watch(self, options: ListOptions) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        self._log("watch", options)
        if self.watch_faults and (fault := self.watch_faults.popleft()) is not None:
            raise fault
        wanted = options.resource_version
        if options.send_initial_events and not self.offers_watch_list:
            raise api_error(422, "Invalid", message="sendInitialEvents is forbidden for watch")
        too_old = wanted not in {"", "0"} and int(wanted) < self.oldest
        if too_old and self.expires_at_start:
            raise expired()
        stream: asyncio.Queue[WatchEvent | End] = asyncio.Queue()
        if options.send_initial_events:
            if wanted and int(wanted) > self.version:
                raise too_large()
            self._send_state(stream)
        elif too_old:
            stream.put_nowait(expired())
        elif wanted in {"", "0"}:
            for obj in self.objects.values():
                stream.put_nowait(WatchEvent(EventType.ADDED, obj))
        else:
            for version, event in self.events:
                if version > int(wanted):
                    stream.put_nowait(event)
        self.streams.append(stream)
        self.opened += 1
        assert options.timeout_seconds is not None
        deadline = asyncio.get_running_loop().time() + options.timeout_seconds
        try:
            yield Stream(self._read(stream, deadline), stream)
        finally:
            self.streams.remove(stream)
            self.closed += 1

    def _send_state(self, stream: asyncio.Queue[WatchEvent | End]) -> None:
        for number, obj in enumerate(self.objects.values()):
            if number == self.holds_back_after:
                return
            stream.put_nowait(WatchEvent(EventType.ADDED, obj))
        if self.holds_back_after is None:
            stream.put_nowait(initial_events_end(self.version))

    @staticmethod
    async def _read(stream: asyncio.Queue[WatchEvent | End], deadline: float) -> AsyncIterator[WatchEvent]:
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    item = await stream.get()
            except TimeoutError:
                return
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            yield item

    def _log(self, verb: str, options: ListOptions) -> None:
        self.asked.append(Asked(asyncio.get_running_loop().time(), verb, options))
