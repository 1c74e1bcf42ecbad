"""What all adapters of this room share: a place in a Prometheus registry, and scrapes that read one moment.

The numbers are kept in our own objects, and a scrape reads them: prometheus-client's own counters would add a
``_created`` series to each name, which upstream does not have.
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
    """Answers the scrapes of a Prometheus registry. Made to be a base class; ``_lock`` guards the numbers."""

    def __init__(self, what: str, registry: CollectorRegistry | None) -> None:
        """Register; ``_families(empty=True)`` is asked for the names in here, so it must work by then.

        Args:
            what: What is measured, for the error.
            registry: Where the numbers are read; None for prometheus-client's default one.

        Raises:
            MissingExtraError: If prometheus-client is not installed.
            ValueError: By prometheus-client, if the registry has these names already.
        """
        try:
            from prometheus_client import REGISTRY
        except ImportError as error:
            raise MissingExtraError(what, "metrics") from error
        self._lock = fork_safe(threading.Lock())
        self._registry = REGISTRY if registry is None else registry
        self._registry.register(cast("Collector", self))

    def close(self) -> None:
        """Leave the registry, so that another object can take the names."""
        self._registry.unregister(cast("Collector", self))

    def describe(self) -> Iterator[Metric]:
        """Yield the names without numbers; prometheus-client asks when this registers."""
        return self._families(empty=True)

    def collect(self) -> Iterator[Metric]:
        """Yield all numbers, all of one moment; prometheus-client asks at each scrape."""
        with self._lock:
            families = list(self._families(empty=False))
        yield from families

    @abstractmethod
    def _families(self, *, empty: bool) -> Iterator[Metric]:
        """Yield the metrics, with their numbers or without any; the lock is held if with."""
