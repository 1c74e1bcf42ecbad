"""Metrics of informer caches.

Each metric has the label ``name`` with the informer's resource, namespace and selectors. As in upstream, versions are
their last 15 digits, because of the precision of floats. Informers with the same name share their metrics: the sum of
sizes, the maximum of ages and the minimum of versions. Unknown ages are omitted.

Source: client-go tools/cache/reflector_metrics.go; controller-runtime pkg/metrics/client_go_adapter.go (0.5);
component-base metrics/prometheus/clientgo/fifo/metrics.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop.cache import CacheLevels
from deltaloop.metrics.collector import RegisteredCollector, Sample, families_of, metrics_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

DURATION_BUCKETS: Final[tuple[float, ...]] = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds for lists and handlers."""

WATCH_BUCKETS: Final[tuple[float, ...]] = (1.0, 5.0, 15.0, 60.0, 120.0, 300.0, 360.0, 420.0, 480.0, 540.0, 600.0, 660.0)
"""Upper bounds in seconds for watches, whose requested timeouts are 300 to 600 seconds."""

ITEM_BUCKETS: Final[tuple[float, ...]] = (0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0)
"""Upper bounds for numbers of objects or events."""

_GAUGES: Final = families_of(
    """
    gauge reflector_last_resource_version name
        Last resource version seen for the reflectors
    gauge informer_queued_items name
        Number of items currently queued in the FIFO.
    gauge informer_store_resource_version name
        The 15 least significant digits of the resource version of the store.
    gauge deltaloop_informer_objects name
        Number of cached objects
    gauge deltaloop_informer_bytes name
        Size of the cached objects as JSON
    gauge deltaloop_informer_last_event_age_seconds name
        Time since the last watch event
    gauge deltaloop_informer_last_byte_age_seconds name
        Time since the server last sent anything
    gauge deltaloop_informer_last_confirmed_age_seconds name
        Time since the server last gave a sign that the state is current
    gauge deltaloop_informer_handler_pending name,handler
        Number of notifications that wait for a handler
    """
)
_SHORT: Final = 1.0
_DIGITS: Final = 15


@final
class InformerMetrics(RegisteredCollector):
    """Prometheus collector that implements ``deltaloop.cache.CacheMetrics``.

    Use it as ``InformerFactory(client, options=InformerOptions(metrics=InformerMetrics()))``, with one collector for
    all informers of a program. It is thread-safe. Each scrape visits all cached objects to measure their size.
    """

    _what = "Prometheus metrics of informer caches"
    _families = families_of(
        """
        counter reflector_lists name
            Total number of API lists done by the reflectors
        counter reflector_streamed_lists name
            How many of the lists were streamed as the beginning of a watch
        counter reflector_watches name
            Total number of API watches done by the reflectors
        counter reflector_short_watches name
            Total number of short API watches done by the reflectors
        counter deltaloop_reflector_events name,type
            Number of watch events, by type
        counter deltaloop_reflector_event_bytes name
            Size of the objects of watch events, as JSON
        counter deltaloop_reflector_failures name,operation,error
            Number of failed lists and watches, by what was being done and by class of error
        counter deltaloop_informer_handler_failures name,handler
            Number of notifications on which a handler failed
        histogram reflector_list_duration_seconds name
            How long an API list takes to return and decode for the reflectors
        histogram reflector_items_per_list name
            How many items an API list returns to the reflectors
        histogram reflector_watch_duration_seconds name
            How long an API watch takes to return and decode for the reflectors
        histogram reflector_items_per_watch name
            How many items an API watch returns to the reflectors
        histogram deltaloop_informer_handler_duration_seconds name,handler
            How long a handler takes for one notification
        """,
        {
            "reflector_list_duration_seconds": DURATION_BUCKETS,
            "reflector_items_per_list": ITEM_BUCKETS,
            "reflector_watch_duration_seconds": WATCH_BUCKETS,
            "reflector_items_per_watch": ITEM_BUCKETS,
            "deltaloop_informer_handler_duration_seconds": DURATION_BUCKETS,
        },
    )

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register the collector; by default in prometheus-client's registry, with one collector of this class.

        Raises MissingExtraError without prometheus-client, and ValueError for registered metric names.
        """
        self._levels: dict[str, list[Callable[[], CacheLevels]]] = {}
        super().__init__(registry=registry)

    def started(self, resource: str, *, levels: Callable[[], CacheLevels]) -> None:
        """Call ``levels`` at each scrape."""
        with self._lock:
            self._levels.setdefault(resource, []).append(levels)

    def stopped(self, resource: str, *, levels: Callable[[], CacheLevels]) -> None:
        """Stop calling ``levels``.

        The counters are kept.
        """
        with self._lock:
            asked = self._levels.get(resource, [])
            if levels in asked:
                asked.remove(levels)
            if not asked:
                self._levels.pop(resource, None)

    def remove(self, resource: str) -> None:
        """Remove the metrics of an informer.

        Unknown names are ignored.
        """
        with self._lock:
            held: tuple[dict[tuple[str, ...], Any], ...] = (*self._numbers.values(), *self._histograms.values())
            for found in held:
                for labels in [labels for labels in found if labels[0] == resource]:
                    del found[labels]

    def listed(self, resource: str, *, seconds: float, items: int, streamed: bool) -> None:
        """Record a list."""
        self._add("reflector_lists", resource)
        self._add("reflector_streamed_lists", resource, by=int(streamed))
        self._observe("reflector_list_duration_seconds", seconds, resource)
        self._observe("reflector_items_per_list", items, resource)

    def watch_opened(self, resource: str) -> None:
        """Count a watch."""
        self._add("reflector_watches", resource)

    def watch_ended(self, resource: str, *, seconds: float, events: int) -> None:
        """Record the end of a watch."""
        self._add("reflector_short_watches", resource, by=int(seconds < _SHORT and events == 0))
        self._observe("reflector_watch_duration_seconds", seconds, resource)
        self._observe("reflector_items_per_watch", events, resource)

    def event(self, resource: str, *, event_type: str, size: int) -> None:
        """Count an event."""
        self._add("deltaloop_reflector_events", resource, event_type)
        self._add("deltaloop_reflector_event_bytes", resource, by=size)

    def failed(self, resource: str, *, operation: str, error: str) -> None:
        """Count a failure."""
        self._add("deltaloop_reflector_failures", resource, operation, error)

    def handled(self, resource: str, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
        """Record a delivery.

        It ignores ``waiting``, which each scrape reads from the levels.
        """
        del waiting
        self._observe("deltaloop_informer_handler_duration_seconds", seconds, resource, handler)
        self._add("deltaloop_informer_handler_failures", resource, handler, by=int(failed))

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without numbers, for the registration."""
        return metrics_of((*self._families, *_GAUGES), ())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics for a scrape."""
        with self._lock:
            asked = {resource: [*levels] for resource, levels in self._levels.items()}
        yield from super().collect()
        # Without the lock, because this visits each cached object and the hooks must not wait for it.
        levels = {resource: [each() for each in asked[resource]] for resource in asked}
        yield from metrics_of(_GAUGES, (each for resource in levels for each in _gauges(resource, levels[resource])))


def _gauges(resource: str, levels: list[CacheLevels]) -> Iterator[Sample]:
    """Yield the gauges of all informers with one name."""
    own = (resource,)
    yield "informer_queued_items", own, sum(each.queued for each in levels)
    yield "deltaloop_informer_objects", own, sum(each.items for each in levels)
    yield "deltaloop_informer_bytes", own, sum(each.bytes_held for each in levels)
    for metric, versions in (
        ("reflector_last_resource_version", [each.seen_resource_version for each in levels]),
        ("informer_store_resource_version", [each.resource_version for each in levels]),
    ):
        numbers = [int(version) for version in versions if version.isascii() and version.isdigit()]
        if numbers:
            yield metric, own, min(numbers) % 10**_DIGITS
    for metric, ages in (
        ("deltaloop_informer_last_event_age_seconds", [each.last_event_age for each in levels]),
        ("deltaloop_informer_last_byte_age_seconds", [each.last_byte_age for each in levels]),
        ("deltaloop_informer_last_confirmed_age_seconds", [each.last_confirmed_age for each in levels]),
    ):
        known = [age for age in ages if age is not None]
        if known:
            yield metric, own, max(known)
    yield from _pending(resource, levels)


def _pending(resource: str, levels: Iterable[CacheLevels]) -> Iterator[Sample]:
    waiting: Counter[str] = Counter()
    for each in levels:
        waiting.update(each.pending)
    for handler, number in waiting.items():
        yield "deltaloop_informer_handler_pending", (resource, handler), number
