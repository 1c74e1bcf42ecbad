"""Metrics of informer caches.

Each metric has the label ``name`` with the informer's resource, namespace and selectors. As in upstream, versions are
their last 15 digits, because of the precision of floats. Informers with the same name share their metrics: the sum of
sizes, the maximum of ages and the minimum of versions. Unknown ages are omitted.

Source: client-go tools/cache/reflector_metrics.go; controller-runtime pkg/metrics/client_go_adapter.go (0.5);
component-base metrics/prometheus/clientgo/fifo/metrics.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, final

from deltaloop.cache import CacheLevels
from deltaloop.metrics.collector import RegisteredCollector
from deltaloop.metrics.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

DURATION_BUCKETS: Final[tuple[float, ...]] = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds for lists and handlers."""

WATCH_BUCKETS: Final[tuple[float, ...]] = (1.0, 5.0, 15.0, 60.0, 120.0, 300.0, 360.0, 420.0, 480.0, 540.0, 600.0, 660.0)
"""Upper bounds in seconds for watches, whose requested timeouts are 300 to 600 seconds."""

ITEM_BUCKETS: Final[tuple[float, ...]] = (0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0)
"""Upper bounds for numbers of objects or events."""

_NAME: Final = ("name",)
_HANDLER: Final = ("name", "handler")
_COUNTERS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "reflector_lists": ("Total number of API lists done by the reflectors", _NAME),
    "reflector_streamed_lists": ("How many of the lists were streamed as the beginning of a watch", _NAME),
    "reflector_watches": ("Total number of API watches done by the reflectors", _NAME),
    "reflector_short_watches": ("Total number of short API watches done by the reflectors", _NAME),
    "deltaloop_reflector_events": ("Number of watch events, by type", ("name", "type")),
    "deltaloop_reflector_event_bytes": ("Size of the objects of watch events, as JSON", _NAME),
    "deltaloop_reflector_failures": (
        "Number of failed lists and watches, by what was being done and by class of error",
        ("name", "operation", "error"),
    ),
    "deltaloop_informer_handler_failures": ("Number of notifications on which a handler failed", _HANDLER),
}
_HISTOGRAMS: Final[dict[str, tuple[str, tuple[str, ...], tuple[float, ...]]]] = {
    "reflector_list_duration_seconds": (
        "How long an API list takes to return and decode for the reflectors",
        _NAME,
        DURATION_BUCKETS,
    ),
    "reflector_items_per_list": ("How many items an API list returns to the reflectors", _NAME, ITEM_BUCKETS),
    "reflector_watch_duration_seconds": (
        "How long an API watch takes to return and decode for the reflectors",
        _NAME,
        WATCH_BUCKETS,
    ),
    "reflector_items_per_watch": ("How many items an API watch returns to the reflectors", _NAME, ITEM_BUCKETS),
    "deltaloop_informer_handler_duration_seconds": (
        "How long a handler takes for one notification",
        _HANDLER,
        DURATION_BUCKETS,
    ),
}
_GAUGES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "reflector_last_resource_version": ("Last resource version seen for the reflectors", _NAME),
    "informer_queued_items": ("Number of items currently queued in the FIFO.", _NAME),
    "informer_store_resource_version": (
        "The 15 least significant digits of the resource version of the store.",
        _NAME,
    ),
    "deltaloop_informer_objects": ("Number of cached objects", _NAME),
    "deltaloop_informer_bytes": ("Size of the cached objects as JSON", _NAME),
    "deltaloop_informer_last_event_age_seconds": ("Time since the last watch event", _NAME),
    "deltaloop_informer_last_byte_age_seconds": ("Time since the server last sent anything", _NAME),
    "deltaloop_informer_last_confirmed_age_seconds": (
        "Time since the server last gave a sign that the state is current",
        _NAME,
    ),
    "deltaloop_informer_handler_pending": ("Number of notifications that wait for a handler", _HANDLER),
}
_SHORT: Final = 1.0
_DIGITS: Final = 15


@final
class InformerMetrics(RegisteredCollector):
    """Prometheus collector that implements ``deltaloop.cache.CacheMetrics``.

    Use it as ``InformerFactory(client, options=InformerOptions(metrics=InformerMetrics()))``, with one collector for
    all informers of a program. It is thread-safe. Each scrape visits all cached objects to measure their size.
    """

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register the collector; by default in prometheus-client's registry, with one collector of this class.

        Raises MissingExtraError without prometheus-client, and ValueError for registered metric names.
        """
        self._counts: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in _COUNTERS}
        self._observed: dict[str, dict[tuple[str, ...], Histogram]] = {name: {} for name in _HISTOGRAMS}
        self._levels: dict[str, list[Callable[[], CacheLevels]]] = {}
        super().__init__("Prometheus metrics of informer caches", registry)

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
            for counts in self._counts.values():
                for labels in [labels for labels in counts if labels[0] == resource]:
                    del counts[labels]
            for observed in self._observed.values():
                for labels in [labels for labels in observed if labels[0] == resource]:
                    del observed[labels]

    def listed(self, resource: str, *, seconds: float, items: int, streamed: bool) -> None:
        """Record a list."""
        with self._lock:
            self._count("reflector_lists", resource)
            self._count("reflector_streamed_lists", resource, by=int(streamed))
            self._observe("reflector_list_duration_seconds", seconds, resource)
            self._observe("reflector_items_per_list", items, resource)

    def watch_opened(self, resource: str) -> None:
        """Count a watch."""
        with self._lock:
            self._count("reflector_watches", resource)

    def watch_ended(self, resource: str, *, seconds: float, events: int) -> None:
        """Record the end of a watch."""
        with self._lock:
            self._count("reflector_short_watches", resource, by=int(seconds < _SHORT and events == 0))
            self._observe("reflector_watch_duration_seconds", seconds, resource)
            self._observe("reflector_items_per_watch", events, resource)

    def event(self, resource: str, *, event_type: str, size: int) -> None:
        """Count an event."""
        with self._lock:
            self._count("deltaloop_reflector_events", resource, event_type)
            self._count("deltaloop_reflector_event_bytes", resource, by=size)

    def failed(self, resource: str, *, operation: str, error: str) -> None:
        """Count a failure."""
        with self._lock:
            self._count("deltaloop_reflector_failures", resource, operation, error)

    def handled(self, resource: str, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
        """Record a delivery.

        It ignores ``waiting``, which each scrape reads from the levels.
        """
        del waiting
        with self._lock:
            self._observe("deltaloop_informer_handler_duration_seconds", seconds, resource, handler)
            self._count("deltaloop_informer_handler_failures", resource, handler, by=int(failed))

    def _count(self, metric: str, *labels: str, by: int = 1) -> None:
        self._counts[metric][labels] += by

    def _observe(self, metric: str, value: float, *labels: str) -> None:
        observed = self._observed[metric]
        if labels not in observed:
            observed[labels] = Histogram(_HISTOGRAMS[metric][2])
        observed[labels].observe(value)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics for a scrape."""
        with self._lock:
            asked = {resource: [*levels] for resource, levels in self._levels.items()}
        yield from super().collect()
        # Without the lock, because this visits each cached object and the hooks must not wait for it.
        yield from _gauges(asked)

    def _families(self, *, empty: bool) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        for name, (text, labels) in _COUNTERS.items():
            counter = CounterMetricFamily(name, text, labels=labels)
            for values, number in [] if empty else sorted(self._counts[name].items()):
                counter.add_metric(values, number)
            yield counter
        for name, (text, labels, _) in _HISTOGRAMS.items():
            histogram = HistogramMetricFamily(name, text, labels=labels)
            for values, observed in [] if empty else sorted(self._observed[name].items(), key=lambda item: item[0]):
                histogram.add_metric(values, observed.buckets(), observed.total)
            yield histogram
        if empty:
            yield from _gauges({})


def _gauges(asked: Mapping[str, Iterable[Callable[[], CacheLevels]]]) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    gauges = {name: GaugeMetricFamily(name, text, labels=labels) for name, (text, labels) in _GAUGES.items()}
    for resource in sorted(asked):
        for name, values, number in _samples(resource, [levels() for levels in asked[resource]]):
            gauges[name].add_metric(values, number)
    yield from gauges.values()


def _samples(resource: str, levels: list[CacheLevels]) -> Iterator[tuple[str, tuple[str, ...], float]]:
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


def _pending(resource: str, levels: Iterable[CacheLevels]) -> Iterator[tuple[str, tuple[str, ...], float]]:
    waiting: Counter[str] = Counter()
    for each in levels:
        waiting.update(each.pending)
    for handler, number in sorted(waiting.items()):
        yield "deltaloop_informer_handler_pending", (resource, handler), number
