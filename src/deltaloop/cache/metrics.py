"""Metrics hooks of caches, which run on the informer's event loop.

Source: client-go tools/cache/reflector_metrics.go (which nothing calls any more), fifo_metrics.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol, final

import msgspec

from deltaloop._internal.tracebacks import GuardedCalls

_logger: Final = logging.getLogger("deltaloop.cache")


class CacheLevels(msgspec.Struct, frozen=True, kw_only=True):
    """Size and age of an informer's cache.

    Ages are in seconds, and None before the first occurrence.

    Attributes:
        items: Number of cached objects.
        bytes_held: Size of the stored objects in bytes.
        queued: Number of queued keys (``DeltaFIFO``) or entries (``RealFIFO``) before the cache.
        pending: Number of pending notifications by handler name.
        resource_version: Version of the cache.
        seen_resource_version: Last version received from the server.
        last_event_age: Age of the last event.
        last_byte_age: Age of the last data from the server.
        last_confirmed_age: Age of the last confirmation that the state is current.
    """

    items: int
    bytes_held: int
    queued: int
    pending: Mapping[str, int]
    resource_version: str
    seen_resource_version: str
    last_event_age: float | None
    last_byte_age: float | None
    last_confirmed_age: float | None


class CacheMetrics(Protocol):
    """Metrics hooks.

    Hooks must be fast. Their exceptions are logged and ignored. ``resource`` is the name of the informer.
    """

    def started(self, resource: str, *, levels: Callable[[], CacheLevels]) -> None:
        """An informer started.

        You can call ``levels`` from any thread; it visits each cached object.
        """
        ...

    def stopped(self, resource: str, *, levels: Callable[[], CacheLevels]) -> None:
        """An informer stopped.

        ``levels`` is the function that ``started`` received.
        """
        ...

    def listed(self, resource: str, *, seconds: float, items: int, streamed: bool) -> None:
        """A list is complete, in pages or streamed.

        ``seconds`` is its duration.
        """
        ...

    def watch_opened(self, resource: str) -> None:
        """The server accepted a watch."""
        ...

    def watch_ended(self, resource: str, *, seconds: float, events: int) -> None:
        """A watch ended after ``events`` events and ``seconds`` seconds."""
        ...

    def event(self, resource: str, *, event_type: str, size: int) -> None:
        """An event was passed on.

        ``size`` is the size of its object in bytes.
        """
        ...

    def failed(self, resource: str, *, operation: str, error: str) -> None:
        """A list or watch failed.

        ``operation`` and ``error`` (a class name) have few different values.
        """
        ...

    def handled(self, resource: str, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
        """A handler call ended after ``seconds`` seconds, with ``waiting`` pending notifications."""
        ...


@final
class GuardedCacheMetrics:
    """Wrapper of optional hooks that logs their exceptions."""

    __slots__ = ("_metrics", "_resource", "_tell", "counts")

    def __init__(self, metrics: CacheMetrics | None, resource: str) -> None:
        self._tell = GuardedCalls(_logger, "metrics hook of the cache raised an exception", resource=resource)
        self._metrics = metrics
        self._resource = resource
        # The caller checks this first if computing the values is expensive.
        self.counts: Final = metrics is not None

    def started(self, levels: Callable[[], CacheLevels]) -> None:
        if self._metrics is not None:
            self._tell(self._metrics.started, self._resource, levels=levels)

    def stopped(self, levels: Callable[[], CacheLevels]) -> None:
        if self._metrics is not None:
            self._tell(self._metrics.stopped, self._resource, levels=levels)

    def listed(self, *, seconds: float, items: int, streamed: bool) -> None:
        if self._metrics is not None:
            self._tell(self._metrics.listed, self._resource, seconds=seconds, items=items, streamed=streamed)

    def watch_opened(self) -> None:
        if self._metrics is not None:
            self._tell(self._metrics.watch_opened, self._resource)

    def watch_ended(self, *, seconds: float, events: int) -> None:
        if self._metrics is not None:
            self._tell(self._metrics.watch_ended, self._resource, seconds=seconds, events=events)

    def event(self, *, event_type: str, size: int) -> None:
        if self._metrics is not None:
            self._tell(self._metrics.event, self._resource, event_type=event_type, size=size)

    def failed(self, *, operation: str, error: str) -> None:
        if self._metrics is not None:
            self._tell(self._metrics.failed, self._resource, operation=operation, error=error)

    def handled(self, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
        if self._metrics is not None:
            self._tell(
                self._metrics.handled, self._resource, handler=handler, seconds=seconds, waiting=waiting, failed=failed
            )
