"""Metrics of leader election, with upstream's names, texts and label.

Source: component-base metrics/prometheus/clientgo/leaderelection/metrics.go; controller-runtime
pkg/metrics/leaderelection.go.
"""

from __future__ import annotations

from typing import Final, final

from deltaloop.leaderelection import MASTER_STATUS, SLOWPATH_TOTAL
from deltaloop.metrics.collector import RegisteredCollector, families_of

_SLOW_PATH: Final = SLOWPATH_TOTAL.removesuffix("_total")


@final
class LeaderMetrics(RegisteredCollector):
    """Prometheus collector that implements ``deltaloop.leaderelection.LeaderElectionMetrics``.

    Use it as ``LeaderElector(lock, metrics=LeaderMetrics())``, with one collector for all electors of a program. It is
    thread-safe.
    """

    _what = "Prometheus metrics of leader election"
    _families = families_of(
        f"""
        gauge {MASTER_STATUS} name
            Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates
            master. 'name' is the string used to identify the lease. Please make sure to group by name.
        counter {_SLOW_PATH} name
            Total number of slow path exercised in renewing leader leases. 'name' is the string used to
            identify the lease. Please make sure to group by name.
        """
    )

    def leader_on(self, name: str) -> None:
        """Record that this process leads."""
        self._set(MASTER_STATUS, 1, name)

    def leader_off(self, name: str) -> None:
        """Record that this process does not lead."""
        self._set(MASTER_STATUS, 0, name)

    def slow_path_exercised(self, name: str) -> None:
        """Record that the first attempt of a renewal failed, so the leader reads the lock."""
        self._add(_SLOW_PATH, name)
