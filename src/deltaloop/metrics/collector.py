"""Base class of the Prometheus collectors.

It keeps its own numbers, because prometheus-client's counters add ``_created`` series, which upstream does not have.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from deltaloop._internal.fork_safety import fork_safe
from deltaloop.api.errors import MissingExtraError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector


class RegisteredCollector(ABC):
    """Base class for collectors in a Prometheus registry. ``_lock`` protects the numbers."""

    def __init__(self, what: str, registry: CollectorRegistry | None) -> None:
        """Register the collector, which calls ``_families(empty=True)``; ``what`` is for the error message.

        Raises MissingExtraError without prometheus-client, and ValueError for registered names.
        """
        try:
            from prometheus_client import REGISTRY
        except ImportError as error:
            raise MissingExtraError(what, "metrics") from error
        self._lock = fork_safe(threading.Lock())
        self._registry = REGISTRY if registry is None else registry
        self._registry.register(cast("Collector", self))

    def close(self) -> None:
        """Unregister the collector, so that a different collector can use the names."""
        self._registry.unregister(cast("Collector", self))

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without numbers, for the registration."""
        return self._families(empty=True)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics for a scrape, as a consistent snapshot."""
        with self._lock:
            families = list(self._families(empty=False))
        yield from families

    @abstractmethod
    def _families(self, *, empty: bool) -> Iterator[Metric]:
        """Yield the metrics, with numbers unless ``empty``. The caller holds the lock if there are numbers."""
