"""Upstream's two metrics of leader election, counted behind the hooks of ``LeaderElectionMetrics``.

Source: k8s.io/component-base metrics/prometheus/clientgo/leaderelection/metrics.go.
"""

from __future__ import annotations

import threading
from typing import Final, final

from deltaloop._internal.fork_safety import fork_safe

MASTER_STATUS: Final = "leader_election_master_status"
"""Gauge with the label ``name``: 1 while this process leads, 0 otherwise."""

SLOWPATH_TOTAL: Final = "leader_election_slowpath_total"
"""Counter with the label ``name``: renewals whose first try failed, so that the lock was read."""


@final
class LeaderElectionCounters:
    """Keeps the numbers of all electors of a process, for ``LeaderElector(metrics=...)``; safe for all threads."""

    def __init__(self) -> None:
        """Begin with no elector."""
        self._mutex = fork_safe(threading.Lock())
        self._numbers: dict[tuple[str, str], float] = {}

    def leader_on(self, name: str) -> None:
        """This process leads from now on."""
        self._set(name, 1.0)

    def leader_off(self, name: str) -> None:
        """This process does not lead any more."""
        self._set(name, 0.0)

    def slow_path_exercised(self, name: str) -> None:
        """A renewal at the first try failed, so the leader reads the lock."""
        with self._mutex:
            key = (SLOWPATH_TOTAL, name)
            self._numbers[key] = self._numbers.get(key, 0.0) + 1.0

    def samples(self) -> dict[tuple[str, str], float]:
        """Return the numbers by metric and elector's name."""
        with self._mutex:
            return dict(self._numbers)

    def _set(self, name: str, value: float) -> None:
        with self._mutex:
            self._numbers[(MASTER_STATUS, name)] = value
