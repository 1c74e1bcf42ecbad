"""The metrics of leader election, with upstream's names, texts and label.

    leader_election_master_status    gauge     1 while this process leads, 0 otherwise
    leader_election_slowpath_total   counter   renewals whose first try failed, so that the lock was read

Each has the one label ``name``, the elector's. The numbers are kept by ``LeaderElectionCounters``.

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
    """Implements ``deltaloop.leaderelection.LeaderElectionMetrics``, and answers the scrapes of a Prometheus registry.

    ``LeaderElector(lock, metrics=LeaderMetrics())``. One object serves all electors of a program. All methods may be
    called from any thread.
    """

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register with a registry.

        Args:
            registry: Where the numbers are read; None for prometheus-client's default one. It holds one object of this
                class at most.

        Raises:
            MissingExtraError: If prometheus-client is not installed.
            ValueError: By prometheus-client, if the registry has these names already.
        """
        self._counters = LeaderElectionCounters()
        super().__init__("Prometheus metrics of leader election", registry)

    def leader_on(self, name: str) -> None:
        """This process leads from now on."""
        self._counters.leader_on(name)

    def leader_off(self, name: str) -> None:
        """This process does not lead, or not any more."""
        self._counters.leader_off(name)

    def slow_path_exercised(self, name: str) -> None:
        """A renewal at the first try failed, so the leader reads the lock."""
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
