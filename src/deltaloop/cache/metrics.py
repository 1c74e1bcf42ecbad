"""The hooks for metrics that caches call, on the informer's loop.

What is a level and not an event (ages, sizes, what waits) costs something to find out, so it is not told but asked for:
``started`` hands over the function that answers with ``CacheLevels``.

Source: client-go tools/cache/reflector_metrics.go (which nothing calls any more), fifo_metrics.go.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, final

import msgspec

from deltaloop._internal.tracebacks import ErrorSummaries

_logger: Final = logging.getLogger("deltaloop.cache")


class CacheLevels(msgspec.Struct, frozen=True, kw_only=True):
    """How much one informer holds and how old that is; ages are in seconds, None before the first time.

    Attributes:
        items: How many objects are cached.
        bytes_held: The size of the cached objects as JSON, in bytes.
        queued: What waits between reflector and cache, in keys or deltas.
        pending: What waits for each handler, by its name.
        resource_version: The version that the cache has come to.
        seen_resource_version: The last version that the server has sent.
        last_event_age: Since the last event came.
        last_byte_age: Since the server last sent anything.
        last_confirmed_age: Since the server last gave a sign that the state is current.
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
    """Hooks.

    They must be quick; what they raise is logged and ignored. ``resource`` names the informer.
    """

    def started(self, resource: str, *, levels: Callable[[], CacheLevels]) -> None:
        """An informer runs; ``levels`` may be called from any thread, and looks at each cached object."""
        ...

    def stopped(self, resource: str, *, levels: Callable[[], CacheLevels]) -> None:
        """An informer that was told of by ``started``, with this very function, has ended."""
        ...

    def listed(self, resource: str, *, seconds: float, items: int, streamed: bool) -> None:
        """A complete list came through, in pages or streamed; ``seconds`` since it was begun."""
        ...

    def watch_opened(self, resource: str) -> None:
        """The server accepted a watch."""
        ...

    def watch_ended(self, resource: str, *, seconds: float, events: int) -> None:
        """A watch ended, in order or not, after bringing so many events."""
        ...

    def event(self, resource: str, *, event_type: str, size: int) -> None:
        """An event was passed on; ``size`` is that of its object in bytes."""
        ...

    def failed(self, resource: str, *, operation: str, error: str) -> None:
        """A list or watch failed; ``operation`` and ``error`` (a class) are of few values."""
        ...

    def handled(self, resource: str, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
        """A handler was told something and took so long; so many notifications wait behind it."""
        ...


@final
class GuardedCacheMetrics:
    """Calls hooks, and lets nothing that they raise out; without hooks it does nothing."""

    __slots__ = ("_errors", "_metrics", "_resource", "counts")

    def __init__(self, metrics: CacheMetrics | None, resource: str) -> None:
        """Guard ``metrics`` of one informer."""
        self._errors = ErrorSummaries()
        self._metrics = metrics
        self._resource = resource
        # To be asked where calling costs more than counting, once for each event.
        self.counts: Final = metrics is not None

    def started(self, levels: Callable[[], CacheLevels]) -> None:
        """Tell of an informer that runs."""
        if self._metrics is not None:
            self._tell(self._metrics.started, levels=levels)

    def stopped(self, levels: Callable[[], CacheLevels]) -> None:
        """Tell of an informer that has ended."""
        if self._metrics is not None:
            self._tell(self._metrics.stopped, levels=levels)

    def listed(self, *, seconds: float, items: int, streamed: bool) -> None:
        """Tell of a list."""
        if self._metrics is not None:
            self._tell(self._metrics.listed, seconds=seconds, items=items, streamed=streamed)

    def watch_opened(self) -> None:
        """Tell of a watch."""
        if self._metrics is not None:
            self._tell(self._metrics.watch_opened)

    def watch_ended(self, *, seconds: float, events: int) -> None:
        """Tell of the end of a watch."""
        if self._metrics is not None:
            self._tell(self._metrics.watch_ended, seconds=seconds, events=events)

    def event(self, *, event_type: str, size: int) -> None:
        """Tell of an event."""
        if self._metrics is not None:
            self._tell(self._metrics.event, event_type=event_type, size=size)

    def failed(self, *, operation: str, error: str) -> None:
        """Tell of a failure."""
        if self._metrics is not None:
            self._tell(self._metrics.failed, operation=operation, error=error)

    def handled(self, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
        """Tell of a delivery."""
        if self._metrics is not None:
            self._tell(self._metrics.handled, handler=handler, seconds=seconds, waiting=waiting, failed=failed)

    def _tell(self, hook: Callable[..., None], **values: Any) -> None:
        try:
            hook(self._resource, **values)
        except Exception as error:  # noqa: BLE001 - metrics that fail must not fail what they measure
            message, extra = "a metrics hook of the cache raised", {"resource": self._resource}
            self._errors.log(_logger, logging.ERROR, message, error, now=time.monotonic(), extra=extra)
