"""What caches tell to whoever counts: hooks, called on the informer's loop; no core, it decides nothing.

What is a level and not an event is asked for instead: ``Informer.freshness`` (ages, what waits),
``Registration.pending`` (depth of a handler's buffer), ``Informer.bytes_held``.

Source: client-go tools/cache/reflector_metrics.go (which nothing calls any more), fifo_metrics.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol, final

_logger: Final = logging.getLogger("deltaloop.cache")


class CacheMetrics(Protocol):
    """Hooks. They must be quick; what they raise is logged and ignored. ``resource`` names the informer."""

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

    def failed(self, resource: str, *, place: str, error: str) -> None:
        """A list or watch failed; ``place`` and ``error`` (a class) are of few values."""
        ...

    def handled(self, resource: str, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
        """A handler was told something and took so long; so many notifications wait behind it."""
        ...


@final
class GuardedMetrics:
    """Calls hooks, and lets nothing that they raise out; without hooks it does nothing."""

    __slots__ = ("_metrics", "_resource")

    def __init__(self, metrics: CacheMetrics | None, resource: str) -> None:
        """Guard ``metrics`` of one informer."""
        self._metrics = metrics
        self._resource = resource

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

    def failed(self, *, place: str, error: str) -> None:
        """Tell of a failure."""
        if self._metrics is not None:
            self._tell(self._metrics.failed, place=place, error=error)

    def handled(self, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
        """Tell of a delivery."""
        if self._metrics is not None:
            self._tell(self._metrics.handled, handler=handler, seconds=seconds, waiting=waiting, failed=failed)

    def _tell(self, hook: Callable[..., None], **values: Any) -> None:
        try:
            hook(self._resource, **values)
        except Exception:
            _logger.exception("a metrics hook of the cache raised", extra={"resource": self._resource})
