"""Base class of the Prometheus collectors.

It keeps its own numbers, because prometheus-client's counters add ``_created`` series, which upstream does not have.
"""

from __future__ import annotations

import re
import textwrap
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias, cast, final

from deltaloop._internal.fork_safety import fork_safe
from deltaloop.api.errors import MissingExtraError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector


@final
class Family(NamedTuple):
    """Metrics of one name."""

    kind: str
    name: str
    text: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()


@final
class Histogram:
    """Number of observations per bucket, and their sum. It is not thread-safe."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """Create an empty histogram. ``bounds`` ascend, and a bucket without an upper bound is added."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total: float = 0.0

    def observe(self, value: float) -> None:
        """Count a value in the first bucket with a bound that is not less."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Return the bounds as texts with cumulative counts, in the format of prometheus-client."""
        bounds = [*(str(bound) for bound in self._bounds), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self._counts)), strict=True))


def families_of(table: str, buckets: Mapping[str, tuple[float, ...]] | None = None) -> tuple[Family, ...]:
    """Read families from lines with a kind, a name and labels, each followed by indented lines with the text."""
    found: list[Family] = []
    for entry in re.split(r"\n(?=\S)", textwrap.dedent(table).strip()):
        head, _, text = entry.partition("\n")
        kind, name, *labels = head.split()
        bounds = (buckets or {}).get(name, ())
        found.append(Family(kind, name, " ".join(text.split()), tuple(labels[0].split(",")) if labels else (), bounds))
    return tuple(found)


# Name of a family, values of its labels, and the number.
Sample: TypeAlias = tuple[str, tuple[str, ...], float | Histogram]


def metrics_of(families: Iterable[Family], samples: Iterable[Sample]) -> Iterator[Metric]:
    """Yield the metrics of families, each sorted by its labels."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample[0], []).append(sample)
    for family in families:
        listed = sorted(found.get(family.name, ()), key=lambda sample: sample[1])
        if family.kind == "histogram":
            histogram = HistogramMetricFamily(family.name, family.text, labels=family.labels)
            for _, labels, value in listed:
                assert isinstance(value, Histogram)
                histogram.add_metric(labels, value.buckets(), value.total)
            yield histogram
            continue
        metric = kinds[family.kind](family.name, family.text, labels=family.labels)
        for _, labels, value in listed:
            assert not isinstance(value, Histogram)
            metric.add_metric(labels, value)
        yield metric


class RegisteredCollector:
    """Base class for collectors in a Prometheus registry. ``_lock`` protects the numbers.

    Subclasses set ``_what``, a description for an error message, and ``_families``.
    """

    _what: ClassVar[str]
    _families: ClassVar[tuple[Family, ...]]

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register the collector.

        Args:
            registry: Prometheus registry. The default (None) is that of prometheus-client. It can contain only one
                collector of this class.

        Raises:
            MissingExtraError: If prometheus-client is not installed.
            ValueError: If these metric names are registered already.
        """
        try:
            from prometheus_client import REGISTRY
        except ImportError as error:
            raise MissingExtraError(self._what, "metrics") from error
        self._lock = fork_safe(threading.Lock())
        self._numbers: dict[str, dict[tuple[str, ...], float]] = {}
        self._histograms: dict[str, dict[tuple[str, ...], Histogram]] = {}
        for family in self._families:
            (self._histograms if family.kind == "histogram" else self._numbers)[family.name] = {}
        self._bounds = {family.name: family.buckets for family in self._families}
        self._registry = REGISTRY if registry is None else registry
        self._registry.register(cast("Collector", self))

    def close(self) -> None:
        """Unregister the collector, so that a different collector can use the names."""
        self._registry.unregister(cast("Collector", self))

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without numbers, for the registration."""
        return metrics_of(self._families, ())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics for a scrape, as a consistent snapshot."""
        with self._lock:
            found = list(metrics_of(self._families, self._samples()))
        yield from found

    # The callers of these methods hold the lock.

    def _samples(self) -> Iterator[Sample]:
        for held in (self._numbers, self._histograms):
            yield from ((name, labels, value) for name, found in held.items() for labels, value in found.items())

    def _add(self, name: str, *labels: str, by: float = 1) -> None:
        numbers = self._numbers[name]
        with self._lock:
            numbers[labels] = numbers.get(labels, 0) + by

    def _set(self, name: str, number: float, *labels: str) -> None:
        with self._lock:
            self._numbers[name][labels] = number

    def _observe(self, name: str, value: float, *labels: str) -> None:
        observed = self._histograms[name]
        with self._lock:
            if labels not in observed:
                observed[labels] = Histogram(self._bounds[name])
            observed[labels].observe(value)
