"""Metrics of leader election, with upstream's names, texts and label.

The label ``name`` contains the name of the elector.

Source: component-base metrics/prometheus/clientgo/leaderelection/metrics.go; controller-runtime
pkg/metrics/leaderelection.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

from deltaloop.leaderelection import MASTER_STATUS, SLOWPATH_TOTAL, LeaderElectionCounters
from deltaloop.metrics.collector import RegisteredCollector

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric


@final
class LeaderMetrics(RegisteredCollector):
    """Prometheus collector that implements ``deltaloop.leaderelection.LeaderElectionMetrics``.

    Use it as ``LeaderElector(lock, metrics=LeaderMetrics())``, with one collector for all electors of a program. It is
    thread-safe.
    """

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register the collector; by default in prometheus-client's registry, with one collector of this class.

        Raises MissingExtraError without prometheus-client, and ValueError for registered metric names.
        """
        self._counters = LeaderElectionCounters()
        super().__init__("Prometheus metrics of leader election", registry)

    def leader_on(self, name: str) -> None:
        """Record that this process leads."""
        self._counters.leader_on(name)

    def leader_off(self, name: str) -> None:
        """Record that this process does not lead."""
        self._counters.leader_off(name)

    def slow_path_exercised(self, name: str) -> None:
        """Record that the first attempt of a renewal failed, so the leader reads the lock."""
        self._counters.slow_path_exercised(name)

    def _families(self, *, empty: bool) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        status = GaugeMetricFamily(
            MASTER_STATUS,
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "
            "'name' is the string used to identify the lease. Please make sure to group by name.",
            labels=["name"],
        )
        slow = CounterMetricFamily(
            SLOWPATH_TOTAL.removesuffix("_total"),
            "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the "
            "lease. Please make sure to group by name.",
            labels=["name"],
        )
        if not empty:
            for (metric, name), number in sorted(self._counters.samples().items()):
                (status if metric == MASTER_STATUS else slow).add_metric([name], number)
        yield from (status, slow)
